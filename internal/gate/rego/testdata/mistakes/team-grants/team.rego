package setpoint.team["team-payments"]

auto contains "ours" if true

package setpoint.team["team-payments"]

deny contains "x" if true

package setpoint.gate

deny contains "far" if input.action.class == "auto"

auto contains "x" if count(deny) == 0

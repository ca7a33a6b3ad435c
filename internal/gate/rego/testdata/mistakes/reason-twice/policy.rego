package setpoint.gate

auto contains "x" if input.action.class == "auto"

deny contains "x" if input.action.class == "escalate"

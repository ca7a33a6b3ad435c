package setpoint.gate

denny contains "x" if input.action.class == "auto"

auto contains "y" if input.action.class == "auto"

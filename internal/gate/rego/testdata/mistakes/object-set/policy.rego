package setpoint.gate

auto["yes"] := true if input.action.class == "auto"

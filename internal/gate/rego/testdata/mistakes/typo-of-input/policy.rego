package setpoint.gate

auto contains "x" if inpt.action.class == "auto"

package setpoint.gate

auto contains "x" if input.action.class != "auto"

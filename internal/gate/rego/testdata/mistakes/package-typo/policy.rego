package setpoint.gates

auto contains "x" if input.action.class == "auto"

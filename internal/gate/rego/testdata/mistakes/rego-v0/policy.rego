package setpoint.gate

auto["x"] { input.action.class == "auto" }

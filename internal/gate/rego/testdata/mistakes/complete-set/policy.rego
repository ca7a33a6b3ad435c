package setpoint.gate

auto := {"yes"} if input.action.class == "auto"

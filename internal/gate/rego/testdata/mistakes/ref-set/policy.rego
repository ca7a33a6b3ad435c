package setpoint.gate

auto.foo contains "yes" if input.action.class == "auto"

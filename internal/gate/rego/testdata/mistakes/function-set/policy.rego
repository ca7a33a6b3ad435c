package setpoint.gate

auto(x) := x

package setpoint.gate

auto := true

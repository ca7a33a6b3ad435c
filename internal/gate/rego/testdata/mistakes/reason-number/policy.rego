package setpoint.gate

auto contains 1

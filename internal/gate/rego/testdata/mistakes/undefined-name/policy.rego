package setpoint.gate

auto contains "x" if nothing

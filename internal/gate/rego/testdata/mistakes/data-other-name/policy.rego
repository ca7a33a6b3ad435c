package setpoint.gate

auto contains "x" if not data.limits.n > 3

package setpoint.gate

auto contains "x" if not data.limit.n > 3

package setpoint.gate

auto contains "x" if count(input.tried) < data.limits.attempts

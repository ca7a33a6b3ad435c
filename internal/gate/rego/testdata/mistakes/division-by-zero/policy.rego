package setpoint.gate

auto contains "x" if 1 / count(input.tried) >= 0

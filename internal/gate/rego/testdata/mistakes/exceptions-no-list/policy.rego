package setpoint.gate

auto contains "x" if data.exceptions.a

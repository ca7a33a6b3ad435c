package setpoint.gate

auto contains "x" if not data.setpoint.gate.nothing

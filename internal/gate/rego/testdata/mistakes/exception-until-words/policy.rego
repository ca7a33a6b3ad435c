package setpoint.gate

auto contains "x" if some e in data.exceptions

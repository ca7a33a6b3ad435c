package setpoint.gate

auto contains "x" if uuid.rfc4122("x") != ""

package setpoint.gate

auto contains "x" if not data.frozen[input.service.name]

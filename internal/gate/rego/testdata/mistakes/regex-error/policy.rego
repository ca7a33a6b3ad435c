package setpoint.gate

auto contains "x" if regex.match("(", input.action.name)

package setpoint.gate

refused if regex.match(input.service.name, "x")

auto contains "not-refused" if not refused

blocked contains "x" if regex.match("(", input.service.name)

auto contains "not-blocked" if count(blocked) == 0

package setpoint.gate

auto contains "x" if {
	every d in input.dependencies { d.stat == "met" }
	count(input.dependencies) > 0
}

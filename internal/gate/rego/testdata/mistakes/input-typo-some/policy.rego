package setpoint.gate

auto contains "x" if {
	some d in input.dependencies
	d.stat == "met"
}

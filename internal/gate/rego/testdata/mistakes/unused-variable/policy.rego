package setpoint.gate

auto contains "x" if {
	x := input.action.class
	input.action.class == "auto"
}

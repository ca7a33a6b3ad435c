package setpoint.gate

auto contains "x" if {
	count(input.changes) == 0
	input.action.class == "approval"
}

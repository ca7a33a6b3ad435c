package setpoint.gate

auto contains "x" if {
	object.get(input.proposal.parameters, "count", 1) < 3
	input.action.class == "approval"
}

package setpoint.gate

auto contains "x" if {
	not input.proposal.parameters.force
	input.action.class == "approval"
}

package setpoint.gate

few contains t if some t in input.tried

auto contains "x" if {
	few
	input.action.class == "approval"
}

package setpoint.gate

auto contains "x" if {
	input.action.class in {"approval", "escalate"}
	input.action.class != "aproval"
}

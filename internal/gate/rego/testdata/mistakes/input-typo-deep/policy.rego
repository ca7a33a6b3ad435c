package setpoint.gate

auto contains "typo" if {
	not input.action.clas == "approval"
}

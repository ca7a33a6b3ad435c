package setpoint.gate

auto contains "typo" if {
	input.acton.class == "auto"
}

package setpoint.gate

auto contains "x" if {
	input.balance.remaining == "unknown"
}

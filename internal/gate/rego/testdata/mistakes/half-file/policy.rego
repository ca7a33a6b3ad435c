package setpoint.gate

auto contains "half" if {
	input.action.cl
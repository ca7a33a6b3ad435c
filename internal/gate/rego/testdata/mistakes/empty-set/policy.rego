package setpoint.gate

late contains t if {
	some t in input.tried
	t.secondsAgo < 600
}

auto contains "x" if {
	count(late) == 0
	input.action.class == "approval"
}

package setpoint.gate

auto contains "asked" if {
	count([]) == 0 with count as http.send
}

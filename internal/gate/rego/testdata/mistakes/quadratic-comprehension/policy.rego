package setpoint.gate

auto contains "slow" if {
	xs := numbers.range(1, 4000)
	count([1 | some x in xs; some y in xs; x + y == 3]) == 2
}

package setpoint.gate

met(objective) if objective.stat == "met"

auto contains "x" if {
	some o in input.state.objectives
	met(o)
}

package setpoint.gate

# What several rules build on. None of these grants or refuses by itself.

# The state that allows an action at all: the SLO is missed now, over the judge
# window too, and every objective of the service is known.
burning if {
	input.state.state == "breached"
	input.state.reason == "burning"
	count(input.state.objectives) > 0
	every objective in input.state.objectives {
		objective.state in {"met", "breached"}
	}
}

# An action that may be granted, alone or with a person. An undo has its own rule.
runnable if {
	burning
	not input.proposal.undo
	input.action.class in {"auto", "approval"}
}

reversible if input.action.reversal in {"transient", "restore"}

# Numbers may be "unknown", which sorts above every number: is_number comes first.
balance_left if {
	is_number(input.balance.remaining)
	is_number(input.balance.global)
	input.balance.remaining > 0
	input.balance.global > 0
}

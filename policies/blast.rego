package setpoint.gate

# METADATA
# title: A parameter changes by a large factor
# custom:
#   remedy: propose a smaller step, or raise data.limits.largeFactor after review
approval contains "large-change" if {
	runnable
	some name, value in input.proposal.parameters
	is_number(value)
	live := input.live[name]
	is_number(live)
	far(value, live)
}

far(value, live) if value > live * data.limits.largeFactor

far(value, live) if value * data.limits.largeFactor < live

# METADATA
# title: What would be overwritten is not known, so it could not be restored
# custom:
#   remedy: make the target's statusURL answer with its state
approval contains "state-not-seen" if {
	runnable
	input.action.reversal == "restore"
	input.live == "unknown"
}

# METADATA
# title: Another controller owns the target
# custom:
#   remedy: change it through its owner, or end that ownership
deny contains "owned-elsewhere" if not input.ownership in {"none", "unknown"}

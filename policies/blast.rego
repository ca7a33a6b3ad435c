package setpoint.gate

# METADATA
# title: A parameter changes by a large factor
# description: >-
#   A number that is observed would grow by more than data.limits.largeFactor, or
#   shrink by more than its inverse.
# custom:
#   remedy: approve it if the new value is right; raise data.limits.largeFactor after review if such steps are usual
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
# description: The action restores by what was observed before it, and nothing was.
# custom:
#   remedy: read the present value yourself before you approve; make the target's statusURL answer with its state
#   absence: what cannot be seen is put before a person
approval contains "state-not-seen" if {
	runnable
	input.action.reversal == "restore"
	input.live == "unknown"
}

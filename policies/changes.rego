package setpoint.gate

# METADATA
# title: The service changed a short while ago
# description: >-
#   The change feed has an entry younger than data.limits.recentChangeMinutes, or
#   one of unknown age. The change is then the likely cause, and what takes it
#   back is the likely cure. Anything else needs a person.
# custom:
#   remedy: >-
#     `setpoint get changes --service NAME` says which; roll it back if it is the cause,
#     approve this if it is not, or wait until the change is data.limits.recentChangeMinutes old
#   absence: a change without a time may be recent, so a person decides
approval contains "recent-change" if {
	runnable
	recently_changed
	not rolls_back
}

recently_changed if {
	some change in input.changes
	change.secondsAgo < data.limits.recentChangeMinutes * 60
}

recently_changed if {
	some change in input.changes
	not is_number(change.secondsAgo)
}

# Actions that take a change back, by what they do or by their name.
rolls_back if input.action.uses == "kubernetes.rollout-undo"

rolls_back if startswith(input.action.name, "rollback")

# METADATA
# title: The service's documents changed recently
# description: >-
#   What people just wrote has not been seen to work; the first actions under it
#   are theirs to allow.
# custom:
#   remedy: approve it if the documents say what you want, or wait for one holdFor without an episode
approval contains "fresh-documents" if {
	runnable
	is_number(input.documents.changedSeconds)
}

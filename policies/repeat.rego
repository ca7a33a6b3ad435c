package setpoint.gate

# METADATA
# title: A second attempt that did not help before needs a person
# description: >-
#   The action was tried in this episode and measurement says that it did not
#   help. More of the same is a person's decision.
# custom:
#   remedy: look at what else changed; approve if it should be tried again
#   absence: an attempt of which nobody knows whether it helped is put before a person
approval contains "second-try" if {
	runnable
	count(fruitless) > 0
}

# METADATA
# title: An action that failed repeatedly in this episode is handed over
# description: >-
#   It was tried data.limits.fruitlessAttempts times, and none of them helped.
# custom:
#   remedy: take over; the attempts and what they did are on the page
escalate contains "repeatedly-fruitless" if {
	not input.proposal.undo
	count(fruitless) >= data.limits.fruitlessAttempts
}

# METADATA
# title: The same action with the same arguments made it worse in this episode
# description: Nothing says that it would be better the next time.
# custom:
#   remedy: propose something else or other arguments, or act by hand
deny contains "worsened-before" if {
	not input.proposal.undo
	some i in fruitless
	input.tried[i].outcome == "worsened"
	input.tried[i].parameters == input.proposal.parameters
}

# Earlier attempts of this action in this episode that were judged and did not
# help.
fruitless contains i if {
	some i, tried in input.tried
	tried.thisEpisode
	tried.action == input.action.name
	tried.outcome in {"no-change", "worsened", "unknown"}
}

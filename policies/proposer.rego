package setpoint.gate

# METADATA
# title: A model proposed something that cannot be taken back
# description: Two people must agree, because a model's proposal has no author.
# custom:
#   remedy: have a second person look at it, or run it by hand
#   absence: what nobody knows how to take back is put before two people
approval contains {"reason": "model-irreversible", "quorum": 2} if {
	runnable
	input.proposal.proposer.kind == "openai"
	not reversible
}

# METADATA
# title: A weaker proposer was asked
# description: >-
#   The proposal is of an endpoint or a model that data.limits.weakProposers
#   names, such as one that answers only when a better one does not.
# custom:
#   remedy: read the measurements rather than the rationale, and approve if they speak for it
approval contains "weak-proposer" if {
	runnable
	some name in data.limits.weakProposers
	name in {input.proposal.proposer.endpoint, input.proposal.proposer.model}
}

package setpoint.gate

# METADATA
# title: A model proposed something that cannot be taken back
# description: Two people must agree, because a model's proposal has no author.
# custom:
#   remedy: let a person propose it through the rules file, or run it by hand
approval contains {"reason": "model-irreversible", "quorum": 2} if {
	runnable
	input.proposal.proposer.kind == "openai"
	not reversible
}

package setpoint.gate_test

# Nothing is granted unless the SLO is measured to be missed now, over the judge
# window too, and every objective is known.
test_not_granted[name] if {
	some name, patch in {
		"met": {"state": {"state": "met", "reason": "met"}},
		"unknown": {"state": {"state": "unknown", "reason": "stale"}},
		"unknown but burning": {"state": {"state": "unknown"}},
		"met but burning": {"state": {"state": "met"}},
		"recovering": {"state": {"reason": "recovering"}},
		"an objective is unknown": {"state": {"objectives": [
			complete.state.objectives[0],
			object.union(complete.state.objectives[0], {"state": "unknown"}),
		]}},
		"no objective": {"state": {"objectives": []}},
		"class unknown": {"action": {"class": "unknown"}},
		"class escalate": {"action": {"class": "escalate"}},
	}
	said := says(patch)
	count(said.auto) == 0
	count(said.approval) == 0
}

# Whatever asks for a person asks only where an action could be granted at all: an
# approval grants too.
test_asks_only_where_it_may_grant[reason] if {
	some reason, trigger in {
		"class": {"input": {"action": {"class": "approval"}}},
		"not-reversible": {"input": {"action": {"reversal": "irreversible"}}},
		"balance-spent": {"input": {"balance": {"remaining": 0}}},
		"after-hours": {"data": {"hours": {"alone": []}}},
		"second-try": {"input": {"tried": [attempt]}},
		"large-change": {"input": {"proposal": {"parameters": {"replicas": 19}}}},
		"state-not-seen": {"input": {"live": "unknown"}},
		"recent-change": {"input": {"changes": [deploy]}},
		"fresh-documents": {"input": {"documents": {"changedSeconds": 1}}},
		"model-irreversible": {"input": {"action": {"reversal": "irreversible"}, "proposal": {"proposer": {"kind": "openai"}}}},
		"weak-proposer": {
			"input": {"proposal": {"proposer": {"model": "m"}}},
			"data": {"limits": {"weakProposers": ["m"]}},
		},
	}
	patch := object.get(trigger, "input", {})
	own := object.get(trigger, "data", {})
	reason in says_with(patch, own).approval
	every closed in [{"state": {"state": "unknown"}}, {"action": {"class": "escalate"}}, undo] {
		count(says_with(object.union(patch, closed), own).approval) == 0
	}
}

# What is not known is text, and text sorts above every number.
test_unknown_balance_is_none_left[name] if {
	some name, patch in {
		"of the action": {"balance": {"remaining": "unknown"}},
		"of the site": {"balance": {"global": "unknown"}},
	}
	said := says(patch)
	count(said.auto) == 0
	"balance-spent" in said.approval
}

package setpoint.gate_test

import data.setpoint.gate

test_complete_is_granted if all_of(complete) == {"auto": {"reversible"}, "approval": set(), "escalate": set(), "deny": set()}

test_transient_is_reversible if "reversible" in gate.auto with input as changed({"action": {"reversal": "transient"}})

# Nothing is granted unless the SLO is measured to be missed now.
test_not_granted[name] if {
	some name, patch in {
		"met": {"state": {"state": "met", "reason": "met"}},
		"unknown": {"state": {"state": "unknown", "reason": "stale"}},
		"recovering": {"state": {"reason": "recovering"}},
		"an objective is unknown": {"state": {"objectives": [object.union(complete.state.objectives[0], {"state": "unknown"})]}},
		"no objective": {"state": {"objectives": []}},
		"met but burning": {"state": {"state": "met"}},
		"class unknown": {"action": {"class": "unknown"}},
		"class escalate": {"action": {"class": "escalate"}},
	}
	doc := changed(patch)
	count(gate.auto) == 0 with input as doc
	count(gate.approval) == 0 with input as doc
}

test_not_granted_alone[name] if {
	some name, patch in {
		"class approval": {"action": {"class": "approval"}},
		"class escalate": {"action": {"class": "escalate"}},
		"irreversible": {"action": {"reversal": "irreversible"}},
		"reversal unknown": {"action": {"reversal": "unknown"}},
		"nothing left": {"balance": {"remaining": 0}},
		"nothing left globally": {"balance": {"global": 0}},
		"balance unknown": {"balance": {"remaining": "unknown"}},
		"global balance unknown": {"balance": {"global": "unknown"}},
	}
	count(gate.auto) == 0 with input as changed(patch)
}

test_class_approval if gate.approval == {"class"} with input as changed({"action": {"class": "approval"}})

test_irreversible_needs_a_person if "not-reversible" in gate.approval with input as changed({"action": {"reversal": "irreversible"}})

test_spent_balance_needs_a_person if gate.approval == {"balance-spent"} with input as changed({"balance": {"remaining": 0}})

test_escalate_is_handed_over if gate.escalate == {"handed-over"} with input as changed({"action": {"class": "escalate"}})

test_unknown_action_is_denied if "not-in-documents" in gate.deny with input as changed({"action": {"class": "unknown", "reversal": "unknown"}})

undo := {"proposal": {"undo": true, "proposer": {"kind": "undo"}}}

test_undo if gate.auto == {"undo"} with input as changed(undo)

test_undo_when_met if gate.auto == {"undo"} with input as changed(object.union(undo, {"state": {"state": "met", "reason": "met"}}))

# Whatever asks for a person asks only where an action could be granted at all.
test_asks_nothing[name] if {
	some name, trigger in {
		"class": {"action": {"class": "approval"}},
		"not-reversible": {"action": {"reversal": "irreversible"}},
		"balance-spent": {"balance": {"remaining": 0}},
		"second-try": {"tried": [attempt]},
		"large-change": {"proposal": {"parameters": {"replicas": 19}}},
		"fresh-documents": {"documents": {"changedSeconds": 1}},
		"state-not-seen": {"live": "unknown"},
		"model-irreversible": {"action": {"reversal": "irreversible"}, "proposal": {"proposer": {"kind": "openai"}}},
	}
	doc := changed(trigger)
	count(gate.approval) > 0 with input as doc
	count(gate.approval) == 0 with input as object.union(doc, {"state": {"state": "unknown"}})
	count(gate.approval) == 0 with input as object.union(doc, {"action": {"class": "escalate"}})
	count(gate.approval) == 0 with input as object.union(doc, undo)
}

test_class_approval_pays_nothing if gate.approval == {"class"} with input as changed({"action": {"class": "approval"}, "balance": {"remaining": 0}})

test_undo_of_class_escalate if count(gate.auto) == 0 with input as changed(object.union(undo, {"action": {"class": "escalate"}}))

test_undo_is_marked if {
	doc := changed({"state": {"state": "met"}, "proposal": {"proposer": {"kind": "undo"}}})
	count(gate.auto) == 0 with input as doc
}

test_undo_is_for_the_loop if count(gate.auto) == 0 with input as changed({"proposal": {"undo": true, "proposer": {"kind": "openai"}}})

test_undo_not_when_unknown if count(gate.auto) == 0 with input as changed(object.union(undo, {"state": {"state": "unknown"}}))

test_undo_needs_restore if count(gate.auto) == 0 with input as changed(object.union(undo, {"action": {"reversal": "transient"}}))

package setpoint.gate_test

test_complete_is_granted if says({}) == {"auto": {"reversible"}, "approval": set(), "escalate": set(), "deny": set()}

test_transient_is_reversible if "reversible" in says({"action": {"reversal": "transient"}}).auto

test_not_granted_alone[name] if {
	some name, patch in {
		"class approval": {"action": {"class": "approval"}},
		"class escalate": {"action": {"class": "escalate"}},
		"irreversible": {"action": {"reversal": "irreversible"}},
		"reversal unknown": {"action": {"reversal": "unknown"}},
		"nothing left": {"balance": {"remaining": 0}},
		"nothing left globally": {"balance": {"global": 0}},
	}
	count(says(patch).auto) == 0
}

test_class_approval if "class" in says({"action": {"class": "approval"}}).approval

test_class_auto_asks_nobody if not "class" in says({}).approval

test_class_approval_pays_nothing if not "balance-spent" in says({"action": {"class": "approval"}, "balance": {"remaining": 0}}).approval

test_irreversible_needs_a_person[reversal] if {
	some reversal in ["irreversible", "unknown"]
	"not-reversible" in says({"action": {"reversal": reversal}}).approval
}

test_reversible_does_not if not "not-reversible" in says({}).approval

test_spent_balance_needs_a_person[which] if {
	some which in ["remaining", "global"]
	"balance-spent" in says({"balance": {which: 0}}).approval
}

test_balance_left_does_not if not "balance-spent" in says({"balance": {"remaining": 0.5, "global": 0.5}}).approval

test_escalate_is_handed_over if "handed-over" in says({"action": {"class": "escalate"}}).escalate

test_unknown_action_is_denied if "not-in-documents" in says({"action": {"class": "unknown", "reversal": "unknown"}}).deny

undo := {"proposal": {"undo": true, "proposer": {"kind": "undo"}}}

test_undo if says(undo).auto == {"undo"}

test_undo_when_met if says(object.union(undo, {"state": {"state": "met", "reason": "met"}})).auto == {"undo"}

test_undo_of_class_approval if says(object.union(undo, {"action": {"class": "approval"}})).auto == {"undo"}

test_no_undo[name] if {
	some name, patch in {
		"of class escalate": object.union(undo, {"action": {"class": "escalate"}}),
		"without its mark": {"state": {"state": "met"}, "proposal": {"proposer": {"kind": "undo"}}},
		"of a model": {"proposal": {"undo": true, "proposer": {"kind": "openai"}}},
		"when unknown": object.union(undo, {"state": {"state": "unknown"}}),
		"without restore": object.union(undo, {"action": {"reversal": "transient"}}),
	}
	count(says(patch).auto) == 0
}

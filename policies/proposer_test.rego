package setpoint.gate_test

model := {"proposal": {"proposer": {"kind": "openai", "endpoint": "main", "model": "m"}}}

test_model_irreversible if {
	patch := object.union(model, {"action": {"reversal": "irreversible"}})
	{"reason": "model-irreversible", "quorum": 2} in ruling(patch).approval
}

test_model_reversible if not "model-irreversible" in says(model).approval

test_rules_irreversible if not "model-irreversible" in says({"action": {"reversal": "irreversible"}}).approval

test_weak_proposer[name] if {
	some name in ["main", "m"]
	"weak-proposer" in says_with(model, {"limits": {"weakProposers": ["other", name]}}).approval
}

test_other_proposer if not "weak-proposer" in says_with(model, {"limits": {"weakProposers": ["other"]}}).approval

test_nobody_is_weak if not "weak-proposer" in says(model).approval

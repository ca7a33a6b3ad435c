package setpoint.gate_test

import data.setpoint.gate

model := {"proposal": {"proposer": {"kind": "openai", "endpoint": "main", "model": "m"}}}

test_model_irreversible if {
	doc := changed(object.union(model, {"action": {"reversal": "irreversible"}}))
	{"reason": "model-irreversible", "quorum": 2} in gate.approval with input as doc
}

test_model_reversible if count(gate.approval) == 0 with input as changed(model)

test_rules_irreversible if not {"reason": "model-irreversible", "quorum": 2} in gate.approval with input as changed({"action": {"reversal": "irreversible"}})

package setpoint.gate_test

import data.setpoint.gate

test_large_change[name] if {
	some name, replicas in {"up": 9, "down": 1}
	"large-change" in gate.approval with input as changed({"proposal": {"parameters": {"replicas": replicas}}})
}

test_small_change[name] if {
	some name, replicas in {"double": 8, "half": 2, "same": 4}
	count(gate.approval) == 0 with input as changed({"proposal": {"parameters": {"replicas": replicas}}})
}

test_large_change_needs_numbers if count(gate.approval) == 0 with input as changed({"proposal": {"parameters": {"replicas": "9"}}})

test_large_change_needs_known_state if count(gate.approval) == 0 with input as changed({"live": {"replicas": "4"}})

test_from_nothing_is_large if "large-change" in gate.approval with input as changed({"live": {"replicas": 0}})

test_state_not_seen if "state-not-seen" in gate.approval with input as changed({"live": "unknown"})

test_transient_needs_no_state if {
	doc := changed({"action": {"reversal": "transient"}, "live": "unknown"})
	count(gate.approval) == 0 with input as doc
}

test_owned_elsewhere_is_denied if "owned-elsewhere" in gate.deny with input as changed({"ownership": "horizontal-pod-autoscaler"})

test_ownership_not_asked if count(gate.deny) == 0 with input as changed({"ownership": "unknown"})

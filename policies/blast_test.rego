package setpoint.gate_test

test_large_change[name] if {
	some name, replicas in {"up": 9, "down": 1}
	"large-change" in says({"proposal": {"parameters": {"replicas": replicas}}}).approval
}

test_small_change[name] if {
	some name, replicas in {"double": 8, "half": 2, "same": 4}
	not "large-change" in says({"proposal": {"parameters": {"replicas": replicas}}}).approval
}

test_large_change_of_another_parameter if "large-change" in says({
	"live": {"weight": 10},
	"proposal": {"parameters": {"weight": 100}},
}).approval

test_large_change_needs_numbers if not "large-change" in says({"proposal": {"parameters": {"replicas": "9"}}}).approval

test_large_change_needs_known_state[name] if {
	some name, live in {"text": {"replicas": "4"}, "nothing": "unknown"}
	not "large-change" in says({"live": live}).approval
}

test_from_nothing_is_large if "large-change" in says({"live": {"replicas": 0}}).approval

test_factor_is_data if {
	patch := {"proposal": {"parameters": {"replicas": 9}}}
	not "large-change" in says_with(patch, {"limits": {"largeFactor": 3}}).approval
}

test_state_not_seen if "state-not-seen" in says({"live": "unknown"}).approval

test_state_seen if not "state-not-seen" in says({}).approval

test_transient_needs_no_state if not "state-not-seen" in says({"action": {"reversal": "transient"}, "live": "unknown"}).approval

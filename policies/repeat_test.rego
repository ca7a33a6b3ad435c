package setpoint.gate_test

import data.setpoint.gate

attempt := {
	"action": "scale", "parameters": {"replicas": 5}, "secondsAgo": 1200, "effect": "applied",
	"outcome": "no-change", "before": 0.1, "after": 0.1, "thisEpisode": true,
}

tried(patches) := changed({"tried": [object.union(attempt, p) | some p in patches]})

test_second_try[outcome] if {
	some outcome in ["no-change", "worsened", "unknown"]
	"second-try" in gate.approval with input as tried([{"outcome": outcome}])
}

test_no_second_try[name] if {
	some name, patch in {
		"it helped": {"outcome": "improved"},
		"not judged yet": {"outcome": "pending"},
		"another action": {"action": "restart"},
		"another episode": {"thisEpisode": false},
	}
	count(gate.approval) == 0 with input as tried([patch])
}

test_handed_over_after_three if "repeatedly-fruitless" in gate.escalate with input as tried([{}, {}, {}])

test_not_handed_over_after_two if count(gate.escalate) == 0 with input as tried([{}, {}])

test_worsened_before_is_denied if "worsened-before" in gate.deny with input as tried([{"outcome": "worsened", "parameters": {"replicas": 6}}])

test_no_change_before_is_not_denied if count(gate.deny) == 0 with input as tried([{"parameters": {"replicas": 6}}])

test_worsened_in_another_episode_is_not_denied if {
	doc := tried([{"outcome": "worsened", "parameters": {"replicas": 6}, "thisEpisode": false}])
	count(gate.deny) == 0 with input as doc
}

test_undo_is_not_handed_over if count(gate.escalate) == 0 with input as object.union(tried([{}, {}, {}]), undo)

test_other_arguments_are_not if count(gate.deny) == 0 with input as tried([{"outcome": "worsened"}])

test_undo_is_no_repeat if {
	doc := object.union(tried([{"outcome": "worsened", "parameters": {"replicas": 6}}]), undo)
	count(gate.deny) == 0 with input as doc
	count(gate.approval) == 0 with input as doc
}

package setpoint.gate_test

attempt := {
	"action": "scale", "parameters": {"replicas": 5}, "secondsAgo": 1200, "effect": "applied",
	"outcome": "no-change", "before": 0.1, "after": 0.1, "thisEpisode": true,
}

tried(patches) := {"tried": [object.union(attempt, p) | some p in patches]}

test_second_try[outcome] if {
	some outcome in ["no-change", "worsened", "unknown"]
	"second-try" in says(tried([{"outcome": outcome}])).approval
}

test_no_second_try[name] if {
	some name, patch in {
		"it helped": {"outcome": "improved"},
		"not judged yet": {"outcome": "pending"},
		"another action": {"action": "restart"},
		"another episode": {"thisEpisode": false},
	}
	not "second-try" in says(tried([patch])).approval
}

test_handed_over_after_three if "repeatedly-fruitless" in says(tried([{}, {}, {}])).escalate

test_not_handed_over_after_two if not "repeatedly-fruitless" in says(tried([{}, {}])).escalate

test_attempts_are_data if "repeatedly-fruitless" in says_with(tried([{}]), {"limits": {"fruitlessAttempts": 1}}).escalate

test_worsened_before_is_denied if "worsened-before" in says(tried([{"outcome": "worsened", "parameters": {"replicas": 6}}])).deny

test_no_change_before_is_not_denied if not "worsened-before" in says(tried([{"parameters": {"replicas": 6}}])).deny

test_worsened_in_another_episode_is_not_denied if {
	patch := tried([{"outcome": "worsened", "parameters": {"replicas": 6}, "thisEpisode": false}])
	not "worsened-before" in says(patch).deny
}

test_other_arguments_are_not if not "worsened-before" in says(tried([{"outcome": "worsened"}])).deny

test_undo_is_not_handed_over if not "repeatedly-fruitless" in says(object.union(tried([{}, {}, {}]), undo)).escalate

test_undo_is_no_repeat if {
	said := says(object.union(tried([{"outcome": "worsened", "parameters": {"replicas": 6}}]), undo))
	not "worsened-before" in said.deny
	not "second-try" in said.approval
}

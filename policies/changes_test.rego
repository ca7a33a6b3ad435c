package setpoint.gate_test

deploy := {"secondsAgo": 600, "what": "deploy", "version": "1.2"}

test_recent_change[name] if {
	some name, seconds in {"now": 0, "the last second": 1799, "clocks differ": -3, "age unknown": "unknown"}
	"recent-change" in says({"changes": [object.union(deploy, {"secondsAgo": seconds})]}).approval
}

test_one_of_many_is_recent if "recent-change" in says({"changes": [
	deploy,
	object.union(deploy, {"secondsAgo": 86400}),
]}).approval

test_old_change if not "recent-change" in says({"changes": [object.union(deploy, {"secondsAgo": 1800})]}).approval

test_no_feed if not "recent-change" in says({}).approval

test_rollback_after_a_change[name] if {
	some name, action in {"by name": {"name": "rollback-flag"}, "by verb": {"name": "back", "uses": "kubernetes.rollout-undo"}}
	not "recent-change" in says({"action": action, "changes": [deploy]}).approval
}

test_no_rollback_in_the_name if "recent-change" in says({"action": {"name": "no-rollback"}, "changes": [deploy]}).approval

test_recent_is_data if {
	not "recent-change" in says_with({"changes": [deploy]}, {"limits": {"recentChangeMinutes": 10}}).approval
	"recent-change" in says_with({"changes": [deploy]}, {"limits": {"recentChangeMinutes": 11}}).approval
}

test_fresh_documents if "fresh-documents" in says({"documents": {"changedSeconds": 12}}).approval

test_settled_documents if not "fresh-documents" in says({}).approval

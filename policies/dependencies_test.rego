package setpoint.gate_test

test_dependency_down if says({"dependencies": [
	{"service": "cache", "state": "met"},
	{"service": "db", "state": "breached"},
]}).escalate == {"dependency-down"}

test_dependency_fine if count(says({}).escalate) == 0

# Not known is not down; a floor holds such a service.
test_dependency_unknown if count(says({"dependencies": [{"service": "db", "state": "unknown"}]}).escalate) == 0

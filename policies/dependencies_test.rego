package setpoint.gate_test

test_dependency_down if "dependency-down" in says({"dependencies": [
	{"service": "cache", "state": "met"},
	{"service": "db", "state": "breached"},
]}).escalate

test_dependency_fine if not "dependency-down" in says({}).escalate

# Not known is not down; a floor holds such a service.
test_dependency_unknown if not "dependency-down" in says({"dependencies": [{"service": "db", "state": "unknown"}]}).escalate

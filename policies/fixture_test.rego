package setpoint.gate_test

import data.setpoint.gate

# A complete input, that of the page for authors, on which every rule that could refuse is content. Tests change
# what matters to them.
complete := {
	"action": {
		"class": "auto",
		"mark": "query",
		"name": "scale",
		"reversal": "restore",
		"target": "webhook http://scaler.internal/checkout",
		"uses": "webhook.post",
	},
	"balance": {
		"capacity": 3,
		"global": 10,
		"remaining": 3,
	},
	"changes": [],
	"dependencies": [
		{
			"service": "payments-db",
			"state": "met",
		},
	],
	"documents": {
		"changedSeconds": "unknown",
	},
	"exceptions": [],
	"live": {
		"replicas": 4,
	},
	"maintenance": [],
	"now": "2026-11-25T10:12:00Z",
	"ownership": "none",
	"proposal": {
		"action": "scale",
		"parameters": {
			"replicas": 6,
		},
		"proposer": {
			"endpoint": "",
			"kind": "rules",
			"model": "",
		},
		"undo": false,
	},
	"service": {
		"mode": "auto",
		"name": "checkout",
		"owner": "team-payments",
	},
	"silences": [],
	"state": {
		"episode": "e17",
		"objectives": [
			{
				"burnRates": [
					{
						"burning": true,
						"covered": true,
						"factor": 14.4,
						"longRate": 16,
						"longSeconds": 3600,
						"page": true,
						"shortRate": 20,
						"shortSeconds": 300,
					},
				],
				"errorBudgetRemaining": -9,
				"group": "none",
				"id": "availability",
				"judgeErrorRatio": 0.1,
				"reason": "burning",
				"sampleAgeSeconds": 5,
				"state": "breached",
				"target": 0.99,
			},
		],
		"reason": "burning",
		"sinceSeconds": 240,
		"state": "breached",
	},
	"tried": [],
	"version": "setpoint.dev/gate/v1",
	"window": {
		"id": "1795601400-600",
		"key": "checkout:1795601400-600",
	},
}

# Data of the tests' own, so that they hold whatever stands in data.yaml.
settings := {
	"hours": {
		"zone": "UTC",
		"alone": [{
			"days": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
			"from": 0,
			"to": 24,
		}],
	},
	"labels": {},
	"limits": {
		"fruitlessAttempts": 3,
		"largeFactor": 2,
		"recentChangeMinutes": 30,
		"weakProposers": [],
	},
}

# The complete input with some fields changed: objects by key, lists as a whole.
changed(patch) := object.union(complete, patch)

# The reasons in the four sets for the complete input with some fields changed.
says(patch) := says_with(patch, {})

# The same with some data changed too.
says_with(patch, data_patch) := {name: {reason(e) | some e in set} |
	some name, set in ruling_with(patch, data_patch)
}

# The four sets as they are, for tests of approvers, quorum and expires.
ruling(patch) := ruling_with(patch, {})

ruling_with(patch, data_patch) := result if {
	own := object.union(settings, data_patch)
	result := {
		"auto": gate.auto,
		"approval": gate.approval,
		"escalate": gate.escalate,
		"deny": gate.deny,
	} with input as changed(patch) with data.hours as own.hours with data.labels as own.labels with data.limits as own.limits
}

reason(element) := element if is_string(element)

reason(element) := element.reason if is_object(element)

# The verdict of the policy alone: the strictest set that says something.
verdict(said) := "deny" if {
	count(said.deny) > 0
} else := "escalate" if {
	count(said.escalate) > 0
} else := "approval" if {
	count(said.approval) > 0
} else := "auto" if {
	count(said.auto) > 0
} else := "deny"

package setpoint.gate_test

import data.setpoint.gate

# A complete input in which every rule that could refuse is content. Tests change
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
	"now": "2026-11-29T03:12:00Z",
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
		"id": "1795921800-600",
		"key": "checkout:1795921800-600",
	},
}

changed(patch) := object.union(complete, patch)

# All that the four sets say of an input, for tests that want exactly this.
all_of(doc) := result if {
	result := {"auto": gate.auto, "approval": gate.approval, "escalate": gate.escalate, "deny": gate.deny} with input as doc
}

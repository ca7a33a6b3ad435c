package setpoint.gate_test

# Inputs that must never lead to an action without a person, each with the loosest
# verdict that it may get and with one reason that keeps it back ("undefined": no
# rule grants it). A rule that is loosened fails here, whatever else its tests say;
# one more rule that refuses does not.
never := {
	"met": {"input": {"state": {"state": "met", "reason": "met"}}, "verdict": "deny", "by": "undefined"},
	"unknown": {"input": {"state": {"state": "unknown", "reason": "no-data"}}, "verdict": "deny", "by": "undefined"},
	"recovering": {"input": {"state": {"reason": "recovering"}}, "verdict": "deny", "by": "undefined"},
	"nothing measured": {"input": {"state": {"objectives": []}}, "verdict": "deny", "by": "undefined"},
	"one objective unknown": {
		"input": {"state": {"objectives": [object.union(complete.state.objectives[0], {"state": "unknown"})]}},
		"verdict": "deny", "by": "undefined",
	},
	"class approval": {"input": {"action": {"class": "approval"}}, "verdict": "approval", "by": "class"},
	"class escalate": {"input": {"action": {"class": "escalate"}}, "verdict": "escalate", "by": "handed-over"},
	"class escalate while met": {
		"input": {"action": {"class": "escalate"}, "state": {"state": "met", "reason": "met"}},
		"verdict": "escalate", "by": "handed-over",
	},
	"not in the documents": {
		"input": {"action": {"class": "unknown", "reversal": "unknown", "mark": "unknown"}},
		"verdict": "deny", "by": "not-in-documents",
	},
	"irreversible": {"input": {"action": {"reversal": "irreversible"}}, "verdict": "approval", "by": "not-reversible"},
	"reversal unknown": {"input": {"action": {"reversal": "unknown"}}, "verdict": "approval", "by": "not-reversible"},
	"undo by a model": {
		"input": {"proposal": {"undo": true, "proposer": {"kind": "openai"}}},
		"verdict": "deny", "by": "undefined",
	},
	"undo while unknown": {
		"input": object.union(undo, {"state": {"state": "unknown", "reason": "stale"}}),
		"verdict": "deny", "by": "undefined",
	},
	"undo of a restart": {"input": object.union(undo, {"action": {"reversal": "transient"}}), "verdict": "deny", "by": "undefined"},
	"balance spent": {"input": {"balance": {"remaining": 0}}, "verdict": "approval", "by": "balance-spent"},
	"balance overdrawn": {"input": {"balance": {"remaining": -2}}, "verdict": "approval", "by": "balance-spent"},
	"balance of the site spent": {"input": {"balance": {"global": 0}}, "verdict": "approval", "by": "balance-spent"},
	"balance unknown": {"input": {"balance": {"remaining": "unknown"}}, "verdict": "approval", "by": "balance-spent"},
	"balance of the site unknown": {"input": {"balance": {"global": "unknown"}}, "verdict": "approval", "by": "balance-spent"},
	"at night": {"input": night, "data": berlin, "verdict": "approval", "by": "after-hours"},
	"at no hour": {"data": {"hours": {"alone": []}}, "verdict": "approval", "by": "after-hours"},
	"dependency down": {
		"input": {"dependencies": [{"service": "db", "state": "breached"}]},
		"verdict": "escalate", "by": "dependency-down",
	},
	"three times as many": {
		"input": {"proposal": {"parameters": {"replicas": 12}}},
		"verdict": "approval", "by": "large-change",
	},
	"down to nothing": {
		"input": {"proposal": {"parameters": {"replicas": 0}}},
		"verdict": "approval", "by": "large-change",
	},
	"overwrites the unseen": {"input": {"live": "unknown"}, "verdict": "approval", "by": "state-not-seen"},
	"tried in vain": {"input": tried([{}]), "verdict": "approval", "by": "second-try"},
	"tried, and who knows": {"input": tried([{"outcome": "unknown"}]), "verdict": "approval", "by": "second-try"},
	"tried three times": {"input": tried([{}, {}, {}]), "verdict": "escalate", "by": "repeatedly-fruitless"},
	"made it worse": {
		"input": tried([{"outcome": "worsened", "parameters": {"replicas": 6}}]),
		"verdict": "deny", "by": "worsened-before",
	},
	"owned by another": {"input": {"ownership": "argo-rollouts"}, "verdict": "deny", "by": "owned-elsewhere"},
	"undo of what another owns": {
		"input": object.union(undo, {"ownership": "argo-rollouts"}),
		"verdict": "deny", "by": "owned-elsewhere",
	},
	"just deployed": {"input": {"changes": [deploy]}, "verdict": "approval", "by": "recent-change"},
	"changed at an unknown time": {
		"input": {"changes": [object.union(deploy, {"secondsAgo": "unknown"})]},
		"verdict": "approval", "by": "recent-change",
	},
	"documents just changed": {
		"input": {"documents": {"changedSeconds": 0}},
		"verdict": "approval", "by": "fresh-documents",
	},
	"a model, and irreversible": {
		"input": object.union(model, {"action": {"reversal": "irreversible"}}),
		"verdict": "approval", "by": "model-irreversible",
	},
	"a weaker model": {
		"input": model,
		"data": {"limits": {"weakProposers": ["m"]}},
		"verdict": "approval", "by": "weak-proposer",
	},
	"strictest of many": {
		"input": {"ownership": "argo-rollouts", "action": {"class": "escalate"}, "balance": {"remaining": 0}},
		"verdict": "deny", "by": "owned-elsewhere",
	},
}

test_never_alone[name] if {
	some name, row in never
	said := says_with(object.get(row, "input", {}), object.get(row, "data", {}))
	strictness[verdict(said)] >= strictness[row.verdict]
	row.verdict != "auto"
	kept(row.by, said)
}

strictness := {"auto": 0, "approval": 1, "escalate": 2, "deny": 3}

kept(by, said) if by in said[_]

kept("undefined", said) if count(said.auto) + count(said.approval) == 0

# Were the complete input refused anyway, the table would show nothing.
test_complete_runs_alone if verdict(says({})) == "auto"

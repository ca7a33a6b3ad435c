package setpoint.gate

# METADATA
# title: A reversible action of class auto runs by itself
# description: >-
#   Grants an action that people declared safe to run alone, while the SLO is
#   measured to be missed and there is autonomy budget left.
# custom:
#   remedy: to ask a person each time, set class approval in the Remediation
auto contains "reversible" if {
	runnable
	input.action.class == "auto"
	reversible
	balance_left
}

# METADATA
# title: An undo restores what an action made worse
# description: >-
#   Grants the loop's own undo of an action that measurement judged Worsened. The
#   service itself may be met by now: a neighbour may be what was hurt.
# custom:
#   remedy: declare another reversal than restore if it must not be undone alone
auto contains "undo" if {
	input.proposal.undo
	input.proposal.proposer.kind == "undo"
	input.action.class in {"auto", "approval"}
	input.action.reversal == "restore"
	input.state.state in {"met", "breached"}
}

# METADATA
# title: An action of class approval runs when a person agrees
# custom:
#   remedy: set class auto in the Remediation once its outcomes earned it
approval contains "class" if {
	runnable
	input.action.class == "approval"
}

# METADATA
# title: An action that cannot be taken back needs a person
# custom:
#   remedy: declare reversal transient or restore if the action is one
approval contains "not-reversible" if {
	runnable
	not reversible
}

# METADATA
# title: No autonomy budget is left, so a person decides
# custom:
#   remedy: wait until charges age out, or setpoint budget reset as a named person
approval contains "balance-spent" if {
	runnable
	input.action.class == "auto"
	not balance_left
}

# METADATA
# title: An action of class escalate is handed over
# custom:
#   remedy: run it by hand; the command is on the page
escalate contains "handed-over" if input.action.class == "escalate"

# METADATA
# title: The action is not in the reviewed documents
# custom:
#   remedy: add the action to the Remediation
deny contains "not-in-documents" if input.action.class == "unknown"

package setpoint.gate

# METADATA
# title: A reversible action of class auto runs by itself
# description: >-
#   Grants an action that people declared safe to run alone, while the SLO is
#   measured to be missed and there is autonomy budget left.
# custom:
#   remedy: freeze the service if it must stop; to be asked each time, set class approval in the Remediation
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
#   remedy: check that the earlier value is back; declare another reversal than restore if it must not be undone alone
auto contains "undo" if {
	input.proposal.undo
	input.proposal.proposer.kind == "undo"
	input.action.class in {"auto", "approval"}
	input.action.reversal == "restore"
	input.state.state in {"met", "breached"}
}

# METADATA
# title: An action of class approval runs when a person agrees
# description: The reviewed documents want a person's word each time.
# custom:
#   remedy: approve or deny the ticket; set class auto in the Remediation once its outcomes earned it
approval contains "class" if {
	runnable
	input.action.class == "approval"
}

# METADATA
# title: An action that cannot be taken back needs a person
# description: Its reversal is irreversible, or no one knows what it is.
# custom:
#   remedy: approve it only if you could repair what it may break; declare reversal transient or restore if it is one
#   absence: what nobody knows how to take back is put before a person
approval contains "not-reversible" if {
	runnable
	not reversible
}

# METADATA
# title: No autonomy budget is left, so a person decides
# description: >-
#   Charges for attempts that did not help have used up the budget of this action
#   or of the whole site, or the budget is not known.
# custom:
#   remedy: approve it if one more attempt is worth it, wait until charges age out, or run setpoint budget reset as a named person
#   absence: a balance that is not known counts as spent, so a person decides
approval contains "balance-spent" if {
	runnable
	input.action.class == "auto"
	not balance_left
}

# METADATA
# title: An action of class escalate is handed over
# description: The reviewed documents leave this action to people in any state.
# custom:
#   remedy: run it by hand; the command is on the page
escalate contains "handed-over" if input.action.class == "escalate"

# METADATA
# title: The action is not in the reviewed documents
# description: Nothing is done that nobody reviewed.
# custom:
#   remedy: act by hand, and add the action to the Remediation if it should be there
deny contains "not-in-documents" if input.action.class == "unknown"

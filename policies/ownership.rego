package setpoint.gate

# METADATA
# title: Another controller owns the target
# description: >-
#   Two controllers of one value fight without end. An undo is refused too: what
#   stands there now is the other one's.
# custom:
#   remedy: change it through its owner, or end that ownership
deny contains "owned-elsewhere" if not input.ownership in {"none", "unknown"}

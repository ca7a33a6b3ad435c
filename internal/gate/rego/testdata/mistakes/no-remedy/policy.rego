package setpoint.gate

# METADATA
# title: Refused
# description: For a reason.
deny contains "x" if input.action.class == "auto"

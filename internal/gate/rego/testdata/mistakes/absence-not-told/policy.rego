package setpoint.gate

# METADATA
# title: Granted
# description: For a reason.
# custom:
#   remedy: mend it
#   absence: true
approval contains "x" if not input.action.class == "auto"

package setpoint.gate

# METADATA
# title: [Refused
deny contains "x" if input.action.class == "auto"

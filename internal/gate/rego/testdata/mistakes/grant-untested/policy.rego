package setpoint.gate

# METADATA
# title: Granted
# description: A mistake.
# custom: {remedy: mend it}
auto contains "x" if input.action.class == "approval"

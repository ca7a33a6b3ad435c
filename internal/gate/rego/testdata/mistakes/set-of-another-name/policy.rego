package setpoint.gate

# METADATA
# title: Nothing on Friday afternoons
# description: It reads as a refusal, and is heard by nobody.
# custom:
#   remedy: wait for Monday
denied contains "friday-afternoon" if input.action.name == "scale"

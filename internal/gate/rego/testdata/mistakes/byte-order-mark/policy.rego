package setpoint.gate

deny contains "x" if input.action.class == "auto"

package setpoint.gate

aproval contains "x" if input.action.class == "auto"

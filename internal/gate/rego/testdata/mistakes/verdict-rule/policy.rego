package setpoint.gate

verdict := "auto" if input.action.class == "auto"

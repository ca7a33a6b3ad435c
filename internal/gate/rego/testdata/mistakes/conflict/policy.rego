package setpoint.gate

limit := 1 if input.action.class == "auto"

limit := 2 if input.action.reversal == "restore"

auto contains "limited" if limit < 3

package setpoint.gate

allowed := false if input.action.class == "auto"
else := true

auto contains "x" if allowed

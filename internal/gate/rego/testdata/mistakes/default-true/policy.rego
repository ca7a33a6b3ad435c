package setpoint.gate

default allowed := true

allowed := false if input.action.class == "auto"

auto contains "x" if allowed

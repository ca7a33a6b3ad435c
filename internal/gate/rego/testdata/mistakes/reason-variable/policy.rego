package setpoint.gate

auto contains x if x := input.action.name

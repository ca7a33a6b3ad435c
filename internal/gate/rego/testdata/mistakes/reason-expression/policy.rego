package setpoint.gate

auto contains sprintf("%s-ok", [input.action.name]) if true

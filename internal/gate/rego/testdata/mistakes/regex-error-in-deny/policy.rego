package setpoint.gate

auto contains "x" if input.action.class == "auto"

deny contains "y" if regex.match("[", input.action.name)

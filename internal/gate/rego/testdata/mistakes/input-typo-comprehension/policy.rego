package setpoint.gate

auto contains "x" if count([t | some t in input.tried; t.outcom == "worsened"]) == 0

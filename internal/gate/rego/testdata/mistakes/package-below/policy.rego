package setpoint.gate.auto

x := 1

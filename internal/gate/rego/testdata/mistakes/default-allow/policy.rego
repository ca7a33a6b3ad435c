package setpoint.gate

default allow := true

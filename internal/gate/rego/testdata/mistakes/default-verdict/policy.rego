package setpoint.gate

default verdict := "auto"

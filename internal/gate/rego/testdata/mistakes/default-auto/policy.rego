package setpoint.gate

default auto := "yes"

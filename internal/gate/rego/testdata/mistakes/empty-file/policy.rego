package setpoint.gate


package setpoint.gate

deny contains "x" if false

package setpoint.gate

deny contains "never" if false

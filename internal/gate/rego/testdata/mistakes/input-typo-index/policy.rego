package setpoint.gate

deny contains "x" if input.tried[_].outcom == "worsened"

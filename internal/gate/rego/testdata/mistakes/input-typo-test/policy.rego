package setpoint.gate

deny contains "x" if input.proposal.undo

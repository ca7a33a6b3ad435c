package setpoint.gate

approval contains {"reason": "x", "approvers": data.people} if true

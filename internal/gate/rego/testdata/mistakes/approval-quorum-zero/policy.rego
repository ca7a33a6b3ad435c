package setpoint.gate

approval contains {"reason": "x", "quorum": 0} if true

package setpoint.gate

approval contains {"reason": "x", "expires": 900} if true

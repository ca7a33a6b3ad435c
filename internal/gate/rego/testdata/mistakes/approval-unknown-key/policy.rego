package setpoint.gate

approval contains {"reason": "x", "approver": ["@a"]} if true

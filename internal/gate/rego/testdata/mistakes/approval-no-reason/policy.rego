package setpoint.gate

approval contains {"approvers": ["@a"]} if true

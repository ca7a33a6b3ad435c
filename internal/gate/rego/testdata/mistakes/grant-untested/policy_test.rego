package setpoint.gate_test

import data.setpoint.gate

test_x if count(gate.auto) == 0 with input as {"action": {"class": "auto"}}

package setpoint.gate_test

import data.setpoint.gate

test_x if count(gate.deny) == 0 with input.proposl.undo as false

package setpoint.gate_test

import data.setpoint.gate

test_dependency_down if gate.escalate == {"dependency-down"} with input as changed({"dependencies": [{"service": "db", "state": "breached"}]})

test_dependency_fine if count(gate.escalate) == 0 with input as complete

package setpoint.gate_test

import data.setpoint.gate

test_fresh_documents if gate.approval == {"fresh-documents"} with input as changed({"documents": {"changedSeconds": 12}})

test_settled_documents if count(gate.approval) == 0 with input as complete

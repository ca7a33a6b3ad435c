package setpoint.gate_test

test_x if {

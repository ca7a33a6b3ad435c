package setpoint.gate_test

test_owned_elsewhere_is_denied if "owned-elsewhere" in says({"ownership": "horizontal-pod-autoscaler"}).deny

test_undo_of_what_is_owned_is_denied if "owned-elsewhere" in says(object.union(undo, {"ownership": "horizontal-pod-autoscaler"})).deny

test_not_owned[ownership] if {
	some ownership in ["none", "unknown"]
	not "owned-elsewhere" in says({"ownership": ownership}).deny
}

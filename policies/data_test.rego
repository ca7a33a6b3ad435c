package setpoint.gate_test

# The other tests have data of their own. These look at what really stands in
# data.yaml: a value of the wrong type makes no error, but rules that are silent.

test_limits_are_numbers[name] if {
	some name in ["fruitlessAttempts", "largeFactor", "recentChangeMinutes"]
	is_number(data.limits[name])
}

test_weak_proposers_are_a_list if is_array(data.limits.weakProposers)

# Without a zone that exists nothing could be decided.
test_zone_exists if time.clock([0, data.hours.zone])

test_hours_open_and_close if every range in data.hours.alone {
	is_number(range.from)
	is_number(range.to)
	range.from < range.to
	count(range.days) > 0
	every day in range.days {
		day in {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	}
}

test_labels_are_by_service if every labels in data.labels {
	is_object(labels)
}

package setpoint.gate_test

# Working hours in Berlin, where it is UTC+1 in November and UTC+2 in July.
berlin := {"hours": {"zone": "Europe/Berlin", "alone": [{
	"days": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"],
	"from": 8,
	"to": 18.5,
}]}}

night := {"now": "2026-11-25T03:12:00Z"}

test_outside_hours[name] if {
	some name, now in {
		"the minute before": "2026-11-30T06:59:59Z",
		"the end": "2026-11-30T17:30:00Z",
		"at night": "2026-11-30T03:12:00Z",
		"on a Sunday": "2026-11-29T12:00:00Z",
		"Saturday there, Friday here": "2026-11-27T23:30:00Z",
		"the end in summer": "2026-07-01T16:30:00Z",
	}
	"after-hours" in says_with({"now": now}, berlin).approval
}

test_within_hours[name] if {
	some name, now in {
		"the start": "2026-11-30T07:00:00Z",
		"the last minute": "2026-11-30T17:29:59Z",
		"with a fraction of a second": "2026-11-30T09:00:00.123456789Z",
		"the start in summer": "2026-07-01T06:00:00Z",
	}
	not "after-hours" in says_with({"now": now}, berlin).approval
}

test_second_range if {
	two := {"hours": {"zone": "UTC", "alone": [{"days": ["Monday"], "from": 22, "to": 24}, {"days": ["Tuesday"], "from": 0, "to": 6}]}}
	not "after-hours" in says_with({"now": "2026-11-30T23:59:59Z"}, two).approval
	not "after-hours" in says_with({"now": "2026-12-01T05:59:59Z"}, two).approval
	"after-hours" in says_with({"now": "2026-12-01T06:00:00Z"}, two).approval
}

# A mistake in data.hours asks a person; it never opens the day.
test_mistaken_hours_ask[name] if {
	some name, range in {
		"text": {"days": ["Wednesday"], "from": 0, "to": "24"},
		"text at the start": {"days": ["Wednesday"], "from": "0", "to": 24},
		"backwards": {"days": ["Wednesday"], "from": 22, "to": 6},
		"short day": {"days": ["Wed"], "from": 0, "to": 24},
		"no end": {"days": ["Wednesday"], "from": 0},
	}
	"after-hours" in says_with({}, {"hours": {"alone": [range]}}).approval
}

test_always_is_never_after_hours if not "after-hours" in says({}).approval

test_undo_at_night if not "after-hours" in says_with(object.union(undo, night), berlin).approval

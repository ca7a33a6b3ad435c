package setpoint.gate

# METADATA
# title: Outside the hours in which actions run alone
# description: >-
#   data.hours says when nobody needs to be asked. As shipped that is always. An
#   undo is not asked about: it restores what was there before.
# custom:
#   remedy: approve it if it cannot wait for the morning; widen data.hours.alone after review
approval contains "after-hours" if {
	runnable
	not within_hours
}

# The time is the input's, seen from the zone of data.hours. An entry whose end
# is no number opens nothing: text sorts above every hour.
within_hours if {
	now := [time.parse_rfc3339_ns(input.now), data.hours.zone]
	[hour, minute, _] := time.clock(now)
	some range in data.hours.alone
	time.weekday(now) in range.days
	is_number(range.to)
	range.from <= hour + (minute / 60)
	hour + (minute / 60) < range.to
}

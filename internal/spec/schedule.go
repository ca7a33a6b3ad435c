package spec

import (
	"cmp"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // A time zone is known on every host, or on none.
)

// maxMaintenance bounds a maintenance: Active looks back minute by minute.
const maxMaintenance = 7 * 24 * time.Hour

// Schedule is when a maintenance is on: again and again (Cron) or once (Start).
//
// Starts are by the clock on the wall of TimeZone, and Duration is real time, so
// that a change of clocks moves a start and never the length. On the day that
// the clocks skip an hour, a cron start inside it does not happen, and a Start
// inside it is refused when it is loaded. On the day that they repeat an hour, a
// start inside it is the first of the two; only a cron whose hour is * starts in
// each, as what it is for does.
type Schedule struct {
	// Cron has the five fields of crontab(5); "" for a Start.
	Cron string
	// Start is an instant; zero for a Cron.
	Start time.Time
	// Duration is 1 m to 7 d.
	Duration time.Duration
	TimeZone string
}

type scheduleDoc struct {
	Cron     *string       `yaml:"cron"`
	Start    Value         `yaml:"start"`
	Duration time.Duration `yaml:"duration,required"`
	TimeZone *string       `yaml:"timeZone"`
}

// schedule checks a schedule.
func (c *checker) schedule(at string, d scheduleDoc) Schedule {
	s := Schedule{Cron: deref(d.Cron), Duration: d.Duration, TimeZone: "UTC"}
	if d.TimeZone != nil {
		s.TimeZone = *d.TimeZone
	}
	c.between(at+".duration", d.Duration, time.Minute, maxMaintenance)
	loc, err := location(s.TimeZone)
	if err != nil {
		c.fault(at+".timeZone", "%s", err)
	}
	once := d.Start.node != nil
	switch {
	case once && d.Cron != nil:
		c.fault(at+".start", "is beside cron: remove one of them")
	case once && loc != nil:
		s.Start = c.start(at, d, loc)
	case !once && d.Cron == nil:
		c.fault(at, "says neither cron, for what comes again, nor start, for what comes once: give one of them")
	case !once:
		if _, err := parseCron(s.Cron); err != nil {
			c.fault(at+".cron", "%s", err)
		}
	}
	return s
}

// localForm is a time without a zone, which is that of the schedule.
const localForm = "2006-01-02T15:04:05"

// start reads a start: local time, or with an offset that says the zone itself.
func (c *checker) start(at string, d scheduleDoc, loc *time.Location) time.Time {
	text, _ := d.Start.Scalar()
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		c.that(cmp.Or(deref(d.TimeZone), "UTC") == "UTC", at+".timeZone",
			"is beside a start with an offset, which says the zone already: remove one of them")
		return t.UTC()
	}
	wall, err := time.Parse(localForm, text)
	if err != nil {
		c.fault(at+".start", `%s is no time: write it like "2026-12-01T14:00:00", in timeZone, or 2026-12-01T14:00:00+01:00`, describe(d.Start.node))
		return time.Time{}
	}
	t, ok := onWall(wall, loc)
	c.that(ok, at+".start", "%s does not exist in %s: the clocks skip it on that day; choose a time before or after", text, loc)
	return t
}

// farthestShift is more than any zone's offset, and than any change of one.
const farthestShift = 26 * time.Hour

// onWall gives the first instant at which the clock on the wall of a zone shows
// a time, which is given as if it were UTC; ok is false when it never does.
func onWall(wall time.Time, loc *time.Location) (t time.Time, ok bool) {
	for at := wall.Add(-farthestShift); ; {
		in := at.In(loc)
		_, offset := in.Zone()
		from, to := in.ZoneBounds()
		t = wall.Add(-time.Duration(offset) * time.Second)
		if (from.IsZero() || !t.Before(from)) && (to.IsZero() || t.Before(to)) {
			return t.UTC(), true
		}
		if to.IsZero() || to.After(wall.Add(farthestShift)) {
			return time.Time{}, false
		}
		at = to
	}
}

// again reports whether the clock on the wall showed this time before: it went
// back since.
func again(t time.Time, loc *time.Location) bool {
	in := t.In(loc)
	first, ok := onWall(time.Date(in.Year(), in.Month(), in.Day(), in.Hour(), in.Minute(), in.Second(), in.Nanosecond(), time.UTC), loc)
	return ok && first.Before(t)
}

// location resolves a named time zone. "Local" is refused, because it makes
// one document mean different hours on different hosts.
func location(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New(`names no time zone: write one like Europe/Berlin, or UTC`)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no known time zone: write one like Europe/Berlin, or UTC", shorten(name))
	}
	return loc, nil
}

// Active reports whether the maintenance applies at that time, and until when
// the run that is on then lasts. A schedule that was not loaded is never
// active.
func (s Schedule) Active(now time.Time) (bool, time.Time) {
	start, ok := s.Start, !s.Start.IsZero()
	if s.Cron != "" {
		start, ok = s.lastStart(now)
	}
	end := start.Add(s.Duration)
	if !ok || now.Before(start) || !now.Before(end) {
		return false, time.Time{}
	}
	return true, end.UTC()
}

// lastStart is the latest start of a cron that reaches now: it walks back minute
// by minute, in real time, so that a change of clocks moves the start and not the
// length.
func (s Schedule) lastStart(now time.Time) (time.Time, bool) {
	c, err := parseCron(s.Cron)
	if err != nil {
		return time.Time{}, false
	}
	loc, err := location(s.TimeZone)
	if err != nil {
		return time.Time{}, false
	}
	minute := now.Truncate(time.Minute)
	for start := minute; now.Sub(start) < s.Duration && minute.Sub(start) <= maxMaintenance; start = start.Add(-time.Minute) {
		if c.matches(start.In(loc)) && (c.anyHour || !again(start, loc)) {
			return start, true
		}
	}
	return time.Time{}, false
}

// Past reports whether it will never be on again: it was for once, and is over.
func (s Schedule) Past(now time.Time) bool {
	return !s.Start.IsZero() && !now.Before(s.Start.Add(s.Duration))
}

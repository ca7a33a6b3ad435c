package spec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// changes are the instants at which the clocks of 2026 change, forward and back:
// by an hour, and on Lord Howe Island by half of one.
var changes = map[string][2]string{
	"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	"America/New_York":    {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
	"Australia/Lord_Howe": {"2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z"},
}

// maintenance loads one with that schedule.
func maintenance(t testing.TB, schedule string) (spec.Schedule, error) {
	t.Helper()
	text := "apiVersion: setpoint.dev/v1alpha1\nkind: Maintenance\nmetadata: {name: once}\n" +
		"spec: {services: [shop], effect: observe, owner: team-a, reason: move, schedule: {" + schedule + "}}\n"
	set, err := spec.Load([]spec.File{read(t, "base.yaml"), {Name: "m", Data: []byte(text)}}, readers)
	if err != nil {
		return spec.Schedule{}, err
	}
	return set.Maintenances[0].Schedule, nil
}

func TestOnceOnTheDaysThatClocksChange(t *testing.T) {
	cases := map[string]struct{ zone, start, want string }{
		"an ordinary day":                 {"Europe/Berlin", "2026-12-01T14:00:00", "2026-12-01T13:00:00Z"},
		"no zone":                         {"", "2026-12-01T14:00:00", "2026-12-01T14:00:00Z"},
		"Berlin, before the gap":          {"Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"},
		"Berlin, at the gap":              {"Europe/Berlin", "2026-03-29T02:00:00", ""},
		"Berlin, the gap's last second":   {"Europe/Berlin", "2026-03-29T02:59:59", ""},
		"Berlin, after the gap":           {"Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"},
		"Berlin, twice: the first":        {"Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"},
		"Berlin, after what is twice":     {"Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"},
		"New York, in the gap":            {"America/New_York", "2026-03-08T02:30:00", ""},
		"New York, after the gap":         {"America/New_York", "2026-03-08T03:00:00", "2026-03-08T07:00:00Z"},
		"New York, twice: the first":      {"America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"},
		"New York, after what is twice":   {"America/New_York", "2026-11-01T02:00:00", "2026-11-01T07:00:00Z"},
		"Lord Howe, in the gap":           {"Australia/Lord_Howe", "2026-10-04T02:15:00", ""},
		"Lord Howe, after the gap":        {"Australia/Lord_Howe", "2026-10-04T02:30:00", "2026-10-03T15:30:00Z"},
		"Lord Howe, twice: the first":     {"Australia/Lord_Howe", "2026-04-05T01:45:00", "2026-04-04T14:45:00Z"},
		"Lord Howe, after what is twice":  {"Australia/Lord_Howe", "2026-04-05T02:00:00", "2026-04-04T15:30:00Z"},
		"with an offset":                  {"", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"},
		"with an offset, and UTC said":    {"UTC", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z"},
		"Samoa has no 30 December 2011":   {"Pacific/Apia", "2011-12-30T12:00:00", ""},
		"and goes on with the 31st there": {"Pacific/Apia", "2011-12-31T00:00:00", "2011-12-30T10:00:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schedule := fmt.Sprintf("start: %q, duration: 30m", tc.start)
			if tc.zone != "" {
				schedule += ", timeZone: " + tc.zone
			}
			got, err := maintenance(t, schedule)
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "does not exist in "+tc.zone) {
					t.Errorf("loads as %s with %v, want a fault that says why not", got.Start, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := at(t, tc.want); !got.Start.Equal(want) {
				t.Errorf("starts at %s, want %s", got.Start, want)
			}
		})
	}
}

// Without quotes YAML reads a time itself; it means the same.
func TestStartWithoutQuotes(t *testing.T) {
	quoted, err := maintenance(t, `start: "2026-12-01T14:00:00", duration: 30m, timeZone: Europe/Berlin`)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := maintenance(t, `start: 2026-12-01T14:00:00, duration: 30m, timeZone: Europe/Berlin`)
	if err != nil || quoted != bare {
		t.Errorf("%+v in quotes, %+v without, %v", quoted, bare, err)
	}
}

func TestOnce(t *testing.T) {
	s := spec.Schedule{Start: at(t, "2026-12-01T13:00:00Z"), Duration: 30 * time.Minute, TimeZone: "Europe/Berlin"}
	for now, want := range map[string]struct{ on, past bool }{
		"2026-12-01T12:59:59Z": {false, false},
		"2026-12-01T13:00:00Z": {true, false},
		"2026-12-01T13:29:59Z": {true, false},
		"2026-12-01T13:30:00Z": {false, true},
		"2027-12-01T13:10:00Z": {false, true},
	} {
		on, until := s.Active(at(t, now))
		if on != want.on || s.Past(at(t, now)) != want.past {
			t.Errorf("at %s: on %t, past %t, want %+v", now, on, s.Past(at(t, now)), want)
		}
		if on != until.Equal(at(t, "2026-12-01T13:30:00Z")) {
			t.Errorf("at %s: until %s", now, until)
		}
	}
	if again := (spec.Schedule{Cron: "0 2 * * *", Duration: time.Hour, TimeZone: "UTC"}); again.Past(at(t, "2100-01-01T00:00:00Z")) {
		t.Error("what comes again is past")
	}
}

func TestCronOnTheDaysThatClocksChange(t *testing.T) {
	cases := map[string]struct{ zone, cron, on, off string }{
		"Berlin, in the gap":               {"Europe/Berlin", "30 2 * * *", "", "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z"},
		"Berlin, after the gap":            {"Europe/Berlin", "0 3 * * *", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		"Berlin, twice: the first":         {"Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		"Berlin, every hour: each":         {"Europe/Berlin", "30 * * * *", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z", "2026-10-25T00:29:00Z"},
		"Berlin, every second hour":        {"Europe/Berlin", "30 */2 * * *", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		"Berlin, every hour over the gap":  {"Europe/Berlin", "30 * * * *", "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z", "2026-03-29T00:29:00Z"},
		"New York, in the gap":             {"America/New_York", "30 2 * * *", "", "2026-03-08T06:30:00Z 2026-03-08T07:30:00Z"},
		"New York, twice: the first":       {"America/New_York", "30 1 * * *", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
		"Lord Howe, in the gap":            {"Australia/Lord_Howe", "15 2 * * *", "", "2026-10-03T15:15:00Z 2026-10-03T15:45:00Z"},
		"Lord Howe, twice: the first":      {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"},
		"Lord Howe, every hour: each":      {"Australia/Lord_Howe", "45 * * * *", "2026-04-04T14:45:00Z 2026-04-04T15:15:00Z", "2026-04-04T14:44:00Z"},
		"Lord Howe, before it shows twice": {"Australia/Lord_Howe", "15 1 * * *", "2026-04-04T14:15:00Z", "2026-04-04T15:45:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec.Schedule{Cron: tc.cron, Duration: time.Minute, TimeZone: tc.zone}
			for want, times := range map[bool]string{true: tc.on, false: tc.off} {
				for _, now := range strings.Fields(times) {
					if on, _ := s.Active(at(t, now)); on != want {
						t.Errorf("at %s: on %t, want %t", now, on, want)
					}
				}
			}
		})
	}
}

// TestLengthOverAChange: a run lasts as long as it says, whatever the clocks do.
func TestLengthOverAChange(t *testing.T) {
	for zone, days := range changes {
		for _, change := range days {
			loc, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			first := at(t, change).Add(-3 * time.Hour)
			local := first.In(loc)
			cron := spec.Schedule{Cron: fmt.Sprintf("%d %d * * *", local.Minute(), local.Hour()), Duration: 6 * time.Hour, TimeZone: zone}
			once := spec.Schedule{Start: first, Duration: 6 * time.Hour, TimeZone: zone}
			for _, s := range []spec.Schedule{cron, once} {
				on, until := s.Active(at(t, change).Add(time.Hour))
				if !on || !until.Equal(first.Add(6*time.Hour)) {
					t.Errorf("%s, %+v: on %t until %s, want until %s", zone, s, on, until, first.Add(6*time.Hour))
				}
			}
		}
	}
}

// drawChange draws a zone, a day on which its clocks change, and the minutes
// around that with what the clock on the wall shows at each.
func drawChange(t *rapid.T) (zone string, loc *time.Location, change time.Time) {
	zone = rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone")
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	change, err = time.Parse(time.RFC3339, changes[zone][rapid.IntRange(0, 1).Draw(t, "day")])
	if err != nil {
		t.Fatal(err)
	}
	return zone, loc, change
}

const around = 30 * time.Hour

// TestOnceAsTheWallShows: a start is the first minute at which somebody who
// watches the clock on the wall sees it, and is refused when nobody ever does.
func TestOnceAsTheWallShows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		zone, loc, change := drawChange(rt)
		local := change.In(loc)
		wall := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC).
			Add(time.Duration(rapid.IntRange(0, 5*60).Draw(rt, "minute")) * time.Minute).Format("2006-01-02T15:04:05")
		var want time.Time
		for m := change.Add(-around); m.Before(change.Add(around)); m = m.Add(time.Minute) {
			if m.In(loc).Format("2006-01-02T15:04:05") == wall {
				want = m
				break
			}
		}
		s, err := maintenance(t, fmt.Sprintf("start: %q, duration: 30m, timeZone: %s", wall, zone))
		if (err != nil) != want.IsZero() {
			rt.Fatalf("%s in %s: %v, and the wall shows it at %s", wall, zone, err, want)
		}
		if err == nil && !s.Start.Equal(want) {
			rt.Fatalf("%s in %s starts at %s, and the wall shows it at %s", wall, zone, s.Start, want)
		}
	})
}

// TestCronAsTheWallShows: somebody who watches the clock on the wall, and starts
// the run whenever it shows such a time (of a fixed hour only when it has not
// shown it before), has it on when Active says so, and until then.
func TestCronAsTheWallShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, loc, change := drawChange(t)
		near := change.In(loc).Hour()
		hour := rapid.SampledFrom([]int{-1, near - 1, near, near, near + 1}).Draw(t, "hour")
		minute := rapid.IntRange(0, 59).Draw(t, "of")
		every := rapid.IntRange(1, 60).Draw(t, "every")
		s := spec.Schedule{
			Cron:     strings.NewReplacer("-1 *", "* *").Replace(fmt.Sprintf("%d-59/%d %d * * *", minute, min(every, 59), hour)),
			Duration: time.Duration(rapid.IntRange(1, 120).Draw(t, "minutes")) * time.Minute, TimeZone: zone,
		}
		now := change.Add(time.Duration(rapid.IntRange(-3*3600, 4*3600).Draw(t, "now")) * time.Second)
		var last time.Time
		shown := map[string]bool{}
		for m := change.Add(-around); !m.After(now); m = m.Add(time.Minute) {
			on := m.In(loc)
			text := on.Format(time.DateTime)
			starts := on.Minute() >= minute && (on.Minute()-minute)%min(every, 59) == 0
			if starts && (hour < 0 || on.Hour() == hour && !shown[text]) {
				last = m
			}
			shown[text] = true
		}
		want := !last.IsZero() && now.Before(last.Add(s.Duration))
		on, until := s.Active(now)
		if on != want || on && !until.Equal(last.Add(s.Duration)) {
			t.Fatalf("%+v at %s: on %t until %s, last start on the wall %s", s, now, on, until, last)
		}
	})
}

func TestWhatIsOver(t *testing.T) {
	set := spec.Set{
		Maintenances: []spec.Maintenance{
			{Name: "again", Services: []string{"shop"}, Effect: spec.Approval, Reason: "batch", Schedule: spec.Schedule{Cron: "0 2 * * *", Duration: time.Hour, TimeZone: "UTC"}},
			{Name: "gone", Services: []string{"shop"}, Schedule: spec.Schedule{Start: at(t, "2026-01-01T00:00:00Z"), Duration: time.Hour}},
			{Name: "move", Services: []string{"shop", "stock"}, Effect: spec.Observe, Reason: "the database moves", Schedule: spec.Schedule{Start: at(t, "2026-12-01T02:30:00Z"), Duration: time.Hour}},
		},
		Exceptions: []spec.Exception{
			{Name: "ended", Service: "shop", Effect: spec.Observe, Until: at(t, "2026-11-01T00:00:00Z")},
			{Name: "sale", Service: "shop", Effect: spec.Suggest, Reason: "many people", Until: at(t, "2026-12-02T00:00:00Z")},
		},
	}
	names := func(now string) (out []string) {
		for _, e := range set.Expired(at(t, now)) {
			out = append(out, e.Name)
		}
		for _, m := range set.Past(at(t, now)) {
			out = append(out, m.Name)
		}
		return out
	}
	for now, want := range map[string][]string{
		"2025-12-31T00:00:00Z": nil,
		"2026-11-01T00:00:00Z": {"ended", "gone"},
		"2026-12-01T03:30:00Z": {"ended", "gone", "move"},
		"2026-12-02T00:00:00Z": {"ended", "sale", "gone", "move"},
	} {
		if diff := cmp.Diff(want, names(now)); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", now, diff)
		}
	}
	for _, tc := range []struct {
		service, now string
		want         spec.Mode
		why          string
	}{
		{"shop", "2026-12-01T12:00:00Z", spec.Suggest, "exception sale allows suggest at most: many people"},
		{"shop", "2026-12-01T02:10:00Z", spec.Suggest, "exception sale allows suggest at most: many people"},
		{"shop", "2026-12-01T02:40:00Z", spec.Observe, "maintenance move allows observe at most: the database moves"},
		{"shop", "2026-12-03T02:10:00Z", spec.Approval, "maintenance again allows approval at most: batch"},
		{"shop", "2026-12-03T12:00:00Z", spec.Auto, ""},
		{"stock", "2026-12-01T12:00:00Z", spec.Auto, ""},
		{"stock", "2026-12-01T02:40:00Z", spec.Observe, "maintenance move allows observe at most: the database moves"},
		{"other", "2026-12-01T02:40:00Z", spec.Auto, ""},
	} {
		if mode, why := set.Mode(tc.service, at(t, tc.now)); mode != tc.want || why != tc.why {
			t.Errorf("%s at %s: %s, %q, want %s, %q", tc.service, tc.now, mode, why, tc.want, tc.why)
		}
	}
}

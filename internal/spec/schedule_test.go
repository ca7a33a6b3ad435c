package spec_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestScheduleActive(t *testing.T) {
	nightly := spec.Schedule{Cron: "0 2 * * *", Duration: time.Hour, TimeZone: "Europe/Berlin"}
	cases := map[string]struct {
		reason   string
		schedule spec.Schedule
		now      string
		want     bool
		until    string
	}{
		"Before":    {"A second early.", nightly, "2026-01-15T00:59:59Z", false, ""},
		"Start":     {"On the minute.", nightly, "2026-01-15T01:00:00Z", true, "2026-01-15T02:00:00Z"},
		"Last":      {"The last second.", nightly, "2026-01-15T01:59:59Z", true, "2026-01-15T02:00:00Z"},
		"End":       {"The end is outside.", nightly, "2026-01-15T02:00:00Z", false, ""},
		"Summer":    {"The zone's summer time moves the start.", nightly, "2026-07-15T00:30:00Z", true, "2026-07-15T01:00:00Z"},
		"Skipped":   {"The hour that the clocks skip does not happen.", nightly, "2026-03-29T01:30:00Z", false, ""},
		"Weekday":   {"Names, and 7 for Sunday.", spec.Schedule{Cron: "30 22 * * fri-7", Duration: time.Minute, TimeZone: "UTC"}, "2026-01-18T22:30:30Z", true, "2026-01-18T22:31:00Z"},
		"NotToday":  {"Thursday is not in fri-7.", spec.Schedule{Cron: "30 22 * * fri-7", Duration: time.Minute, TimeZone: "UTC"}, "2026-01-15T22:30:30Z", false, ""},
		"EitherDay": {"Two restricted day fields: either is enough.", spec.Schedule{Cron: "0 0 13 * fri", Duration: 24 * time.Hour, TimeZone: "UTC"}, "2026-01-16T12:00:00Z", true, "2026-01-17T00:00:00Z"},
		"Step":      {"Every 20 minutes from 5.", spec.Schedule{Cron: "5/20 * * jan *", Duration: time.Minute, TimeZone: "UTC"}, "2026-01-15T10:45:10Z", true, "2026-01-15T10:46:00Z"},
		"Overlap":   {"A start inside a run renews it.", spec.Schedule{Cron: "0 * * * *", Duration: 90 * time.Minute, TimeZone: "UTC"}, "2026-01-15T10:15:00Z", true, "2026-01-15T11:30:00Z"},
		"Long":      {"A run of days.", spec.Schedule{Cron: "0 0 * * mon", Duration: 3 * 24 * time.Hour, TimeZone: "UTC"}, "2026-01-14T23:59:59Z", true, "2026-01-15T00:00:00Z"},
		"NotLoaded": {"What Load would refuse is never on.", spec.Schedule{Cron: "whenever", Duration: time.Hour, TimeZone: "UTC"}, "2026-01-15T01:00:00Z", false, ""},
		"NoZone":    {"Nor without a zone.", spec.Schedule{Cron: "* * * * *", Duration: time.Hour}, "2026-01-15T01:00:00Z", false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := spec.Maintenance{Services: []string{"shop"}, Schedule: tc.schedule}
			got, until := tc.schedule.Active(at(t, tc.now))
			if got != tc.want || m.Active("shop", at(t, tc.now)) != tc.want {
				t.Fatalf("%s active: %t, want %t", tc.reason, got, tc.want)
			}
			if m.Active("stock", at(t, tc.now)) {
				t.Error("a service that is not named is in maintenance")
			}
			if tc.want && !until.Equal(at(t, tc.until)) {
				t.Errorf("%s until %s, want %s", tc.reason, until, tc.until)
			}
		})
	}
}

// TestScheduleUntilHolds: a run that is on at one instant is on until the end
// that it gave, less a moment.
func TestScheduleUntilHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec.Schedule{
			Cron:     rapid.SampledFrom([]string{"0 2 * * *", "*/7 * * * *", "15 3 1 * *", "0 0 * * sun", "59 23 28-31 * *"}).Draw(t, "cron"),
			Duration: time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute,
			TimeZone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"}).Draw(t, "zone"),
		}
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), 0)
		on, until := s.Active(now)
		if !on {
			return
		}
		if !now.Before(until) || until.Sub(now) > s.Duration {
			t.Fatalf("%+v at %s until %s", s, now.UTC(), until)
		}
		if still, _ := s.Active(until.Add(-time.Nanosecond)); !still {
			t.Fatalf("%+v says until %s, and is off a moment before", s, until)
		}
	})
}

func TestExceptionEnds(t *testing.T) {
	e := spec.Exception{Until: at(t, "2026-12-01T00:00:00Z")}
	if !e.Active(at(t, "2026-11-30T23:59:59Z")) || e.Active(e.Until) {
		t.Error("an exception holds until its end, and no longer")
	}
}

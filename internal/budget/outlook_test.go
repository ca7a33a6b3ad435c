package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
)

func TestOutlook(t *testing.T) {
	list := func(cs ...budget.Charge) []budget.Charge { return cs }
	mine := func(before time.Duration, cost float64) budget.Charge { return charge("shop", "restart", before, cost) }
	forever := budget.Policy{Capacity: 3}
	cases := map[string]struct {
		reason  string
		policy  budget.Policy
		charges []budget.Charge
		want    budget.Outlook
	}{
		"nothing charged":     {"nothing leaves, nothing comes", own, nil, budget.Outlook{}},
		"nothing allowed":     {"is empty already", budget.Policy{Period: 28 * day}, nil, budget.Outlook{Empty: now}},
		"one just now":        {"2 in four weeks is 0.5 a week, and the 1 that is left is used up in two", own, list(mine(0, 2)), budget.Outlook{Spent: 2, NextRoom: now.Add(28 * day), PerWeek: 0.5, Empty: now.Add(14 * day)}},
		"one small one":       {"it leaves before the rest is used up", own, list(mine(0, 1)), budget.Outlook{Spent: 1, NextRoom: now.Add(28 * day), PerWeek: 0.25}},
		"one that leaves":     {"it is gone in a week", own, list(mine(21*day, 2)), budget.Outlook{Spent: 2, NextRoom: now.Add(7 * day), PerWeek: 0.5}},
		"spread evenly":       {"as much leaves as comes", own, list(mine(21*day, 0.5), mine(14*day, 0.5), mine(7*day, 0.5), mine(0, 0.5)), budget.Outlook{Spent: 2, NextRoom: now.Add(7 * day), PerWeek: 0.5}},
		"after one has left":  {"0.5 is left and 0.375 used when 0.5 leaves in a week; the 0.625 then lasts five thirds of a week", budget.Policy{Period: 28 * day, Capacity: 2}, list(mine(21*day, 0.5), mine(0, 1)), budget.Outlook{Spent: 1.5, NextRoom: now.Add(7 * day), PerWeek: 0.375, Empty: now.Add(56 * day / 3)}},
		"spent":               {"is empty now, until the oldest leaves", own, list(mine(20*day, 1), mine(day, 2)), budget.Outlook{Spent: 3, NextRoom: now.Add(8 * day), PerWeek: 0.75, Empty: now}},
		"overdrawn":           {"is empty now", own, list(mine(day, 2), mine(day, 2)), budget.Outlook{Spent: 4, NextRoom: now.Add(27 * day), PerWeek: 1, Empty: now}},
		"aged out":            {"counts no more", own, list(mine(28*day, 2)), budget.Outlook{}},
		"NaN cost":            {"takes the whole budget", own, list(mine(day, math.NaN())), budget.Outlook{Spent: 3, NextRoom: now.Add(27 * day), PerWeek: 0.75, Empty: now}},
		"never ages":          {"2 in two weeks, nothing leaves", forever, list(mine(14*day, 2)), budget.Outlook{Spent: 2, PerWeek: 1, Empty: now.Add(7 * day)}},
		"never ages, young":   {"an hour is no pace: a week at least", forever, list(mine(time.Hour, 2)), budget.Outlook{Spent: 2, PerWeek: 2, Empty: now.Add(7 * day / 2)}},
		"never ages, and far": {"no date is given for another century", budget.Policy{Capacity: 1e9}, list(mine(7*day, 1e-3)), budget.Outlook{Spent: 1e-3, PerWeek: 1e-3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := budget.Of("shop", "restart", tc.policy, global, tc.charges, nil, now)
			got := b.Outlook(tc.policy, now)
			if near(got.Empty, tc.want.Empty) {
				got.Empty = tc.want.Empty
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// near allows for a float that is no whole nanosecond.
func near(a, b time.Time) bool { return !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() < time.Second }

// TestOutlookProperties compares the projection with a walk in steps of an hour.
func TestOutlookProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := budget.Policy{Period: time.Duration(rapid.IntRange(1, 60).Draw(t, "days")) * day, Capacity: rapid.Float64Range(0, 10).Draw(t, "capacity")}
		var cs []budget.Charge
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			cs = append(cs, charge("shop", "restart", time.Duration(rapid.IntRange(0, 90*24).Draw(t, "hours"))*time.Hour, rapid.Float64Range(0.1, 4).Draw(t, "cost")))
		}
		b := budget.Global(p, cs, nil, now)
		got := b.Outlook(p, now)
		left := func(at time.Time) float64 {
			room := p.Capacity - got.PerWeek*float64(at.Sub(now))/float64(7*day)
			for _, c := range cs {
				if at.Before(c.At.Add(p.Period)) {
					room -= c.Cost
				}
			}
			return room
		}
		if math.Abs(got.Spent+b.Remaining-p.Capacity) > 1e-9 {
			t.Fatalf("spent %g of %g, and %g is left", got.Spent, p.Capacity, b.Remaining)
		}
		if !got.NextRoom.IsZero() && budget.Global(p, cs, nil, got.NextRoom).Remaining <= b.Remaining {
			t.Fatalf("no room came at %s", got.NextRoom)
		}
		const slack = 1e-6
		end := now.Add(p.Period)
		if !got.Empty.IsZero() {
			if end = got.Empty; left(end) > slack {
				t.Fatalf("%g is left at %s, when nothing should be", left(end), end)
			}
		}
		for at := now; at.Before(end); at = at.Add(time.Hour) {
			if left(at) < -slack {
				t.Fatalf("nothing is left at %s already, and %+v", at, got)
			}
		}
	})
}

// TestGlobal: what it says is left is what every other balance says of the
// fleet, and its charges add up to it.
func TestGlobal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		charges := rapid.SliceOfN(rapid.Custom(drawCharge), 0, 12).Draw(t, "charges")
		resets := drawResets(t)
		b := budget.Global(global, charges, resets, now)
		of := budget.Of("shop", "restart", own, global, charges, resets, now)
		if b.Remaining != of.GlobalRemaining || b.GlobalRemaining != of.GlobalRemaining || b.Capacity != of.GlobalCapacity {
			t.Fatalf("got %+v, beside %+v", b, of)
		}
		total := 0.0
		for _, c := range b.Charges {
			total += c.Cost
		}
		if b.Capacity-total != b.Remaining {
			t.Fatalf("charges of %g leave %g of %g", total, b.Remaining, b.Capacity)
		}
		if got := b.Outlook(global, now).Spent; got != total {
			t.Fatalf("the outlook says %g is spent, not %g", got, total)
		}
	})
}

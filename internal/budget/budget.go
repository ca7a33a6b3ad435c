// Package budget is the autonomy error budget: permission that is paid for.
// It takes the charges that the ledger folded and gives a Balance. It knows
// measured outcomes only, and no proposal.
package budget

import (
	"cmp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const maxAmount = 1e12

// Policy is the size of a budget.
type Policy struct {
	Period   time.Duration `json:"-"`
	Capacity float64       `json:"capacity"`
}

// room is what the policy allows; a capacity that is no amount allows nothing.
func (p Policy) room() float64 {
	if !isAmount(p.Capacity) {
		return 0
	}
	return p.Capacity
}

// Charge is what one claim by verdict auto costs: the dearest outcome until
// the measured one replaces it.
type Charge struct {
	Service, Action string
	// Decision is the id of the decision that claimed.
	Decision string
	// At is the time of the claim; the charge leaves one period later.
	At      time.Time
	Cost    float64
	Outcome compare.Outcome
}

// Reset is a named person's fresh start: charges before At do not count, until
// Until if that is set.
type Reset struct {
	// Service and Action are empty for the global budget.
	Service, Action string
	At, Until       time.Time
	By, Reason      string
}

// InForce reports whether a reset counts at now.
func (r Reset) InForce(now time.Time) bool {
	return !r.At.After(now) && (r.Until.IsZero() || now.Before(r.Until))
}

// Balance is the room that is left for one service x action, and globally.
type Balance struct {
	// Remaining and GlobalRemaining are negative when more was charged than the
	// capacity: an undo is charged whatever is left, and a capacity may be
	// lowered. It is shown as it is, because charges must age out to above zero
	// before anything is afforded again.
	Remaining, Capacity             float64
	GlobalRemaining, GlobalCapacity float64
	// Charges are those that count against Remaining, oldest first.
	Charges []Charge
}

// Affords reports whether a further charge of that cost fits both. An empty
// balance affords nothing, not even what is free; a cost that is no amount is
// never afforded.
func (b Balance) Affords(cost float64) bool {
	return isAmount(cost) &&
		b.Remaining > 0 && b.Remaining >= cost &&
		b.GlobalRemaining > 0 && b.GlobalRemaining >= cost
}

// Of computes the balance of one service x action at now from all charges of
// the fleet. What cannot be read as an amount or lies in the future counts; it
// never makes room.
//
//nolint:revive // argument-limit: two names, two policies, two lists and the time; a struct would only rename them.
func Of(service, action string, own, global Policy, charges []Charge, resets []Reset, now time.Time) Balance {
	mine := slices.DeleteFunc(slices.Clone(charges), func(c Charge) bool {
		return c.Service != service || c.Action != action
	})
	b := Balance{Capacity: own.room(), GlobalCapacity: global.room()}
	b.Charges = counting(mine, own, lastReset(resets, service, action, now), now)
	b.Remaining = b.Capacity - sum(b.Charges)
	everywhere := counting(charges, global, lastReset(resets, "", "", now), now)
	b.GlobalRemaining = b.GlobalCapacity - sum(everywhere)
	return b
}

// Cost is what an outcome leaves charged. Recovered, Improved and None (no-op,
// void, not-landed) are free, and so is NoChange on a service that was recovering
// already. Pending, and a word that is not known, stays at the dearest.
//
// Worsened is never free: what was getting better by itself and got worse after
// the action is the strongest evidence of harm there is, and harm that no balance
// pays for would grow with the fleet.
func Cost(o compare.Outcome, recovering bool, costs spec.Costs) float64 {
	switch o {
	case compare.OutcomeNone, compare.OutcomeRecovered, compare.OutcomeImproved:
		return 0
	case compare.OutcomeUnknown:
		return costs.Unknown
	case compare.OutcomeWorsened:
		return costs.Worsened
	case compare.OutcomeNoChange:
		if recovering {
			return 0
		}
		return costs.NoChange
	default:
		return costs.Dearest()
	}
}

// counting returns the charges that count against a policy, oldest first. The
// order is total, so that the same charges give the same sum on every replica.
func counting(charges []Charge, p Policy, since, now time.Time) []Charge {
	var cs []Charge
	for _, c := range charges {
		switch {
		case c.At.Before(since):
			continue
		case p.Period > 0 && !now.Before(c.At.Add(p.Period)):
			continue
		case !isAmount(c.Cost):
			// A cost nobody can add up takes the whole budget.
			c.Cost = max(p.room(), 1)
		}
		if c.Cost > 0 {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b Charge) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Action, b.Action),
			cmp.Compare(a.Decision, b.Decision), cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Outcome, b.Outcome))
	})
	return cs
}

// lastReset is the latest reset of one budget; one from the future is not yet.
func lastReset(resets []Reset, service, action string, now time.Time) time.Time {
	var last time.Time
	for _, r := range resets {
		if r.Service == service && r.Action == action && r.InForce(now) && r.At.After(last) {
			last = r.At
		}
	}
	return last
}

func sum(cs []Charge) float64 {
	total := 0.0
	for _, c := range cs {
		total += c.Cost
	}
	return total
}

// isAmount holds for what can be added up: no NaN, nothing negative, and
// nothing so large that a sum of it is no longer a number.
func isAmount(v float64) bool { return v >= 0 && v <= maxAmount }

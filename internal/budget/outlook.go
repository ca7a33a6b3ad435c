package budget

import (
	"slices"
	"time"
)

const week = 7 * 24 * time.Hour

// farthest bounds a projection: beyond it nothing is said.
const farthest = 100 * 365 * 24 * time.Hour

// Outlook is what the charges of one budget lead to if nobody resets it.
type Outlook struct {
	// Spent is the sum of the charges that count, 0 or more.
	Spent float64
	// NextRoom is when the oldest charge leaves; zero when nothing is charged, and
	// when nothing ages out.
	NextRoom time.Time
	// PerWeek is the pace: Spent per seven days of the period. Where nothing ages
	// out it is that since the oldest charge, over one week at least.
	PerWeek float64
	// Empty is when nothing will be left at that pace, while the charges that
	// count leave in their time: now when nothing is left already, zero when they
	// leave sooner than others come.
	Empty time.Time
}

// Outlook looks ahead from now. The balance is that of p: Of gives the one of a
// service x action, Global that of the fleet.
func (b Balance) Outlook(p Policy, now time.Time) Outlook {
	// Resets are past: what one of them wiped is not among the charges any more.
	cs := counting(b.Charges, p, time.Time{}, now)
	o := Outlook{Spent: sum(cs)}
	if len(cs) == 0 {
		if p.room() <= 0 {
			o.Empty = now
		}
		return o
	}
	if p.Period > 0 {
		o.NextRoom = cs[0].At.Add(p.Period)
	}
	pace := o.Spent / float64(p.span(cs[0].At, now))
	o.PerWeek = pace * float64(week)
	o.Empty = p.emptyAt(cs, pace, now)
	return o
}

// span is the time over which the charges came.
func (p Policy) span(oldest, now time.Time) time.Duration {
	if p.Period > 0 {
		return p.Period
	}
	return max(now.Sub(oldest), week)
}

// emptyAt is when the charges that count still, and new ones at a pace (cost per
// nanosecond), first take all the room. New ones age out too, so after a period
// there is no more to come than there is at its end.
func (p Policy) emptyAt(cs []Charge, pace float64, now time.Time) time.Time {
	left := p.room() - sum(cs)
	from := now
	for _, c := range cs {
		until := now.Add(farthest)
		if p.Period > 0 {
			until = c.At.Add(p.Period)
		}
		if at, ok := reach(left, pace, from, until); ok {
			return at
		}
		left += c.Cost - pace*float64(until.Sub(from))
		from = until
	}
	return time.Time{}
}

// reach is when a pace has used up what is left, if that is before until.
func reach(left, pace float64, from, until time.Time) (time.Time, bool) {
	if left <= 0 {
		return from, true
	}
	if need := left / pace; need < float64(until.Sub(from)) {
		return from.Add(time.Duration(need)), true
	}
	return time.Time{}, false
}

// Global is the balance of the whole fleet: Remaining and Charges are those of
// the global budget, which is what GlobalRemaining of any other Balance says.
func Global(p Policy, charges []Charge, resets []Reset, now time.Time) Balance {
	b := Balance{Capacity: p.room(), GlobalCapacity: p.room()}
	b.Charges = counting(slices.Clone(charges), p, lastReset(resets, "", "", now), now)
	b.Remaining = b.Capacity - sum(b.Charges)
	b.GlobalRemaining = b.Remaining
	return b
}

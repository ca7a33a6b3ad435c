package worst

import (
	"math"
	"slices"
	"time"
)

// course is the true error ratio of one service over time, and when nobody could
// measure it.
type course struct {
	// changes hold from their time on, oldest first.
	changes []change
	blind   []span
}

type change struct {
	at    time.Time
	ratio float64
}

type span struct{ from, to time.Time }

// healthy fails in the best of times.
const healthy = 0.001

// set makes the ratio hold from a time on; what was planned for later is dropped.
func (c *course) set(at time.Time, ratio float64) {
	i := len(c.changes)
	for i > 0 && !c.changes[i-1].at.Before(at) {
		i--
	}
	c.changes = append(c.changes[:i], change{at, ratio})
}

func (c *course) at(t time.Time) float64 {
	for _, x := range slices.Backward(c.changes) {
		if !x.at.After(t) {
			return x.ratio
		}
	}
	return healthy
}

// mean is the true ratio of a window.
func (c *course) mean(w span) float64 { return c.over(w, func(time.Time) bool { return true }) }

// over is the mean of the parts of a window of which keep says yes.
func (c *course) over(w span, keep func(time.Time) bool) float64 {
	grid := gridOf(w)
	sum, n := 0.0, 0
	for t := w.from; t.Before(w.to); t = t.Add(grid) {
		if keep(t) {
			sum, n = sum+c.at(t), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// measured is what a source would answer: known is false where it has nothing of
// the window.
func (c *course) measured(w span) (ratio float64, known bool) {
	lit := func(t time.Time) bool { return !c.isBlind(t) }
	for t := w.from; t.Before(w.to); t = t.Add(gridOf(w)) {
		if lit(t) {
			return c.over(w, lit), true
		}
	}
	return 0, false
}

// gridOf is how closely a window is looked at: a month is only shown.
func gridOf(w span) time.Duration { return max(time.Minute, w.to.Sub(w.from)/60) }

func (c *course) isBlind(t time.Time) bool {
	for _, b := range slices.Backward(c.blind) {
		if !t.Before(b.from) && t.Before(b.to) {
			return true
		}
	}
	return false
}

// These are those of the documents.
const (
	target    = 0.99
	judge     = 10 * time.Minute
	fifth     = 2 * time.Minute
	settle    = 5 * time.Minute
	unknown   = 10 * time.Minute
	worseBy   = 0.2
	allowance = 1 - target
)

// harmed reports whether the true course got worse over an effect, in the terms
// of the documents and with eyes that nothing can blind.
func (c *course) harmed(at time.Time) bool {
	before, after := c.around(at)
	return c.broken(at) || after > allowance+1e-9 && after-allowance >= (1+worseBy)*(before-allowance)-1e-9
}

// broken reports whether the course met its target before an effect, and misses it
// after.
func (c *course) broken(at time.Time) bool {
	before, after := c.around(at)
	return before <= allowance+1e-9 && after > allowance+1e-9
}

func (c *course) around(at time.Time) (before, after float64) {
	before = max(c.mean(span{at.Add(-judge), at}), c.mean(span{at.Add(-fifth), at}))
	return before, c.mean(span{at.Add(settle), at.Add(settle + judge)})
}

// recovering reports whether the last judge window has at most half of the excess
// of the one before it.
func (c *course) recovering(at time.Time) bool {
	now, then := c.mean(span{at.Add(-judge), at}), c.mean(span{at.Add(-2 * judge), at.Add(-judge)})
	return then > allowance && now-allowance <= (then-allowance)/2+1e-9
}

// steady reports whether nothing moved for two judge windows.
func (c *course) steady(at time.Time) bool {
	now, then := c.mean(span{at.Add(-judge), at}), c.mean(span{at.Add(-2 * judge), at.Add(-judge)})
	return math.Abs(now-then) < 1e-9
}

// forget drops what no window reaches any more.
func (c *course) forget(before time.Time) {
	for len(c.changes) > 1 && c.changes[1].at.Before(before) {
		c.changes = c.changes[1:]
	}
	c.blind = slices.DeleteFunc(c.blind, func(b span) bool { return b.to.Before(before) })
}

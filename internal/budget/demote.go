package budget

import (
	"slices"
	"time"
)

// MaxWorsened is how many outcomes Worsened within one period of its budget an
// action is forgiven less than: the second takes it one rung down the ladder
// (auto, approval, suggest, observe). Two in a row suspend it besides, until a
// named reset; after that it has the lower rung to start from.
const MaxWorsened = 2

// Demoted reports whether the outcomes Worsened of one service x action, the
// newest of which was measured at now, take it one rung down. Those that are
// older than the period do not count, and the caller forgets those from before
// the last reset, or the last time that its ceiling was set. A demotion costs
// nothing and no balance pays for it: it also stops an action whose budget would
// pay for more harm. Without a period nothing ages.
func Demoted(worsened []time.Time, period time.Duration, now time.Time) bool {
	n := 0
	for _, at := range worsened {
		if period <= 0 || now.Before(at.Add(period)) {
			n++
		}
	}
	return n >= MaxWorsened
}

// KeptWorsened are the outcomes that Demoted can still need.
func KeptWorsened(worsened []time.Time) []time.Time {
	return slices.Clone(worsened[max(0, len(worsened)-MaxWorsened):])
}

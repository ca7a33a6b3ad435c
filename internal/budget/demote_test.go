package budget_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
)

func TestDemoted(t *testing.T) {
	at := func(before ...time.Duration) []time.Time {
		var out []time.Time
		for _, d := range before {
			out = append(out, now.Add(-d))
		}
		return out
	}
	cases := map[string]struct {
		reason   string
		worsened []time.Time
		period   time.Duration
		want     bool
	}{
		"none":      {"nothing happened", nil, 28 * day, false},
		"one":       {"one is paid for", at(0), 28 * day, false},
		"two":       {"the second costs a rung", at(27*day, 0), 28 * day, true},
		"aged out":  {"to the moment", at(28*day, 0), 28 * day, false},
		"no period": {"nothing ages", at(1000*day, 0), 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := budget.Demoted(tc.worsened, tc.period, now); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

// TestKeptWorsenedIsEnough: forgetting all but the kept outcomes after each one
// changes no answer.
func TestKeptWorsenedIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := now.Add(-100 * day)
		var all, kept []time.Time
		for range rapid.IntRange(1, 10).Draw(t, "outcomes") {
			at = at.Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours")) * time.Hour)
			all, kept = append(all, at), budget.KeptWorsened(append(kept, at))
			whole, some := budget.Demoted(all, 28*day, at), budget.Demoted(kept, 28*day, at)
			if whole != some {
				t.Fatalf("of all outcomes %t, of the kept ones %t: %v", whole, some, all)
			}
		}
	})
}

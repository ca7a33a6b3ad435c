package step_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/step"
)

var stormLimits = step.StormLimits{Min: 5, Fraction: 0.3, Cooldown: 10 * time.Minute}

func TestBrake(t *testing.T) {
	at := func(phase ledger.Phase, ago time.Duration) ledger.StormAt {
		return ledger.StormAt{Storm: ledger.Storm{Phase: phase}, At: now.Add(-ago)}
	}
	cases := map[string]struct {
		reason string
		known  ledger.StormAt
		red    step.Weather
		want   ledger.Phase // "" stays
	}{
		"calm":              {"nothing to do", at("", 0), step.Weather{Loaded: 40}, ""},
		"thirty of forty":   {"a shared cause", at("", 0), step.Weather{Loaded: 40, Breached: 30}, ledger.StormOn},
		"together":          {"breached and unknown by a source count together", at("", 0), step.Weather{Loaded: 40, Breached: 7, Unknown: 6}, ledger.StormOn},
		"more, not as many": {"the fraction must be exceeded", at("", 0), step.Weather{Loaded: 40, Breached: 12}, ""},
		"at least":          {"the number must be reached", at("", 0), step.Weather{Loaded: 6, Breached: 5}, ledger.StormOn},
		"few":               {"a fleet of four has no storm", at("", 0), step.Weather{Loaded: 4, Breached: 4}, ""},
		"goes on":           {"it is on already", at(ledger.StormOn, time.Hour), step.Weather{Loaded: 40, Breached: 30}, ""},
		"below one":         {"below both, not below one", at(ledger.StormOn, time.Hour), step.Weather{Loaded: 40, Breached: 6}, ""},
		"eases":             {"below both", at(ledger.StormOn, time.Hour), step.Weather{Loaded: 40, Breached: 4}, ledger.StormEasing},
		"not long enough":   {"below both, for the cooldown", at(ledger.StormEasing, 10*time.Minute-1), step.Weather{Loaded: 40}, ""},
		"over":              {"below both, for the cooldown", at(ledger.StormEasing, 10*time.Minute), step.Weather{Loaded: 40}, ledger.StormOff},
		"comes back":        {"a new wave begins the cooldown anew", at(ledger.StormEasing, 9*time.Minute), step.Weather{Loaded: 40, Breached: 30}, ledger.StormOn},
		"no longer eases":   {"between the thresholds nothing eases", at(ledger.StormEasing, 9*time.Minute), step.Weather{Loaded: 40, Breached: 6}, ledger.StormOn},
		"back in no time":   {"over is over", at(ledger.StormOff, time.Minute), step.Weather{Loaded: 40, Breached: 30}, ledger.StormOn},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next, ok := step.Brake(tc.known, tc.red, stormLimits, now)
			got := next.Phase
			if !ok {
				got = ""
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWeatherCounts(t *testing.T) {
	var w step.Weather
	w.Add(compare.Met, "")
	w.Add(compare.Breached, "")
	w.Add(compare.Unknown, "main")
	w.Add(compare.Unknown, "")
	w.Add("", "")
	if diff := cmp.Diff(step.Weather{Loaded: 5, Breached: 1, Unknown: 1}, w); diff != "" {
		t.Errorf("what is unknown for its own reasons is loaded and not red (-want +got):\n%s", diff)
	}
}

// TestBrakeHolds: whatever the weather does, the brake is on in every pass that
// sees a storm, it never goes off sooner than the cooldown after the last bad
// reading, and the ledger takes every change.
func TestBrakeHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, at := ledger.StormAt{}, now
		var bad time.Time
		for range rapid.IntRange(1, 60).Draw(t, "passes") {
			at = at.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
			w := step.Weather{Loaded: 20, Breached: rapid.IntRange(0, 20).Draw(t, "breached")}
			was := known
			next, ok := step.Brake(known, w, stormLimits, at)
			if ok {
				s := ledger.NewState()
				s.Storm = known
				if _, err := ledger.StormDraft(s, next); err != nil {
					t.Fatalf("the ledger does not take it: %v", err)
				}
				known = ledger.StormAt{Storm: next, At: at}
			}
			if w.Storm(stormLimits) {
				bad = at
				if !known.Holds() {
					t.Fatalf("no brake in %+v", w)
				}
			}
			if was.Holds() && !known.Holds() && at.Sub(bad) < stormLimits.Cooldown {
				t.Fatalf("off %s after the last storm", at.Sub(bad))
			}
		}
	})
}

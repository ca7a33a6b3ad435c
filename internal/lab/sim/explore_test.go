package sim_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

func TestInterleavings(t *testing.T) {
	const window = 130 * time.Second
	cases := map[string]struct {
		reason string
		scope  sim.Scope
		sends  int
	}{
		"TwoWindows": {"two replicas, two windows, one fault", sim.Scope{Ticks: []time.Duration{window}, Passes: 1}, 2},
		"Asked":      {"one window, a person who may approve and one who may deny", sim.Scope{Passes: 2, Ask: true}, 1},
		"Doubt":      {"a permit that outlives the horizon", sim.Scope{Ticks: []time.Duration{20 * time.Second}, Passes: 1}, 1},
		"Frozen":     {"a freeze at any moment of one window", sim.Scope{Passes: 2, Freeze: true}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "TwoWindows" {
				t.Skip("the largest scope is not short")
			}
			t.Parallel()
			began := time.Now()
			x, err := sim.Explore(tc.scope)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d states, %s interleavings, up to %d sends, in %s", tc.reason, x.States, x.Interleavings, x.Sends, time.Since(began).Round(time.Millisecond))
			for _, v := range x.Violations {
				t.Errorf("%s: %s", v.Invariant, v.Text)
			}
			if x.Sends != tc.sends {
				t.Errorf("at most %d sends, want %d: the scope is not what it says", x.Sends, tc.sends)
			}
		})
	}
}

// The explorer can fail: each of these mutants breaks within its scope.
func TestInterleavingsCatchMutants(t *testing.T) {
	cases := map[string]struct {
		mutant string
		scope  sim.Scope
		want   string
	}{
		"Resend":      {"resend after a timeout", sim.Scope{Ticks: []time.Duration{6 * time.Second}, Passes: 1}, "never-resend"},
		"Claim":       {"claim not conditional", sim.Scope{Ticks: []time.Duration{130 * time.Second}, Passes: 1}, "one-unsettled-effect"},
		"Start":       {"start not conditional", sim.Scope{Ticks: []time.Duration{130 * time.Second}, Passes: 1}, "started-follows-claim"},
		"EarlyProof":  {"horizon counted from started alone", sim.Scope{Ticks: []time.Duration{20 * time.Second}, Passes: 1}, "started-before-send"},
		"AfterSend":   {"claim after send", sim.Scope{Passes: 1}, "claim-before-send"},
		"VoidStarted": {"void after start", sim.Scope{Ticks: []time.Duration{40 * time.Second}, Passes: 1}, "void-before-start-only"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x, err := sim.Explore(sim.ScopeWithMutant(tc.scope, tc.mutant))
			if err != nil {
				t.Fatal(err)
			}
			caught := map[string]int{}
			for _, v := range x.Violations {
				caught[v.Invariant]++
			}
			t.Logf("%s: %d states, caught by %v", tc.mutant, x.States, caught)
			if caught[tc.want] == 0 {
				t.Errorf("caught by %v, want %s", caught, tc.want)
			}
		})
	}
}

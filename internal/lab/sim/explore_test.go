package sim_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

func TestInterleavings(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  sim.Scope
		sends  int
	}{
		"TwoWindows": {"two replicas, two windows, one fault, policy allows", sim.Scope{Ticks: []time.Duration{130 * time.Second}, Passes: 2}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
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

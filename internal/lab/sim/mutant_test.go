package sim_test

import (
	"context"
	"slices"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

// Each mutant breaks one promise of the machine. What caught it is named, so
// that a monitor which stops looking is missed here.
func TestMutantsAreCaught(t *testing.T) {
	const within = 3000 // seeds
	cases := map[string]struct {
		reason string
		by     []string // one of these monitors must be the first
	}{
		"claim after send":                   {"a crash between the two would send twice", []string{"claim-before-send"}},
		"no second gate":                     {"the world may have changed since the decision", []string{"gated-again-before-start"}},
		"resend after a timeout":             {"the first may have landed", []string{"never-resend"}},
		"charge forgotten":                   {"a restart would refill the budget", []string{"claims-are-charged"}},
		"approval not bound to its digest":   {"people approved other bytes", []string{"approval-binds-bytes"}},
		"start not conditional":              {"a deny or a void came before", []string{"started-follows-claim", "a-deny-stops-it", "no-start-while-frozen"}},
		"void after start":                   {"what may have been sent is no refund", []string{"void-before-start-only"}},
		"no last look":                       {"a process was stopped after started", []string{"no-send-after-expiry", "no-send-while-frozen", "started-before-send"}},
		"unknown read as breached":           {"no data is no reason to act", []string{"no-claim-on-unknown"}},
		"claim not conditional":              {"two replicas would act at once", []string{"one-unsettled-effect", "windows-never-decrease", "no-claim-while-frozen", "caps", "tickets-reserve-their-key", "balance-never-negative", "approval-is-needed"}},
		"horizon counted from started alone": {"a permit that still lives may be sent after the question", []string{"started-before-send", "refund-needs-proof"}},
		"cap blind to claims under way":      {"two services would share the last place", []string{"caps"}},
	}
	for _, name := range sim.Mutants() {
		t.Run(name, func(t *testing.T) {
			tc, ok := cases[name]
			if !ok {
				t.Fatalf("nobody says what catches it")
			}
			r, err := sim.Run(context.Background(), sim.WithMutant(sim.Options{Seeds: within, FirstSeed: 1, Steps: 200, Parallel: 2}, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) == 0 {
				t.Fatalf("survived %d seeds, although %s", r.Seeds, tc.reason)
			}
			first := r.Violations[0]
			t.Logf("%s: caught by %s in %d seeds: %s", name, first.Invariant, r.Seeds, first.Text)
			if !slices.Contains(tc.by, first.Invariant) {
				t.Errorf("caught by %s, want one of %v", first.Invariant, tc.by)
			}
		})
	}
}

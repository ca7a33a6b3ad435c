package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

func run(t *testing.T, o sim.Options) sim.Report {
	t.Helper()
	r, err := sim.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The short version of setpoint-lab sim: no seed breaks anything. Rare states
// need more seeds than these; most are reached all the same.
func TestSim(t *testing.T) {
	r := run(t, sim.Options{Seeds: 400, FirstSeed: 1, Steps: 200, Parallel: 2})
	t.Logf("%d seeds, %d steps, %d entries, %d sends, %d effects, %d checks; unreached: %s",
		r.Seeds, r.Steps, r.Entries, r.Sends, r.Effects, r.Checked, strings.Join(r.Unreached, ", "))
	for _, v := range r.Violations {
		t.Errorf("%s: %s at step %d\n%s", v.Invariant, v.Text, v.Step, v.Replay(200))
	}
	if most := len(r.Counters) - len(r.Unreached); r.Seeds != 400 || r.Sends < 200 || most < 70 {
		t.Errorf("%d seeds, %d sends, %d states reached: the world has gone quiet", r.Seeds, r.Sends, most)
	}
	// What one guard lets through another one stops, so a guard that is gone
	// shows as a state that is never reached.
	for _, name := range []string{
		"claim lost", "void by second gate: permit-expired", "void by second gate: unknown", "permit expired at the last look",
		"expired claim voided", "start lost", "void lost", "asked by another replica", "settled as landed",
		"not landed, proved after the horizon", "reason clocks-apart", "reason budget-spent", "reason bounds", "claimed by a ticket",
	} {
		if slices.Contains(r.Unreached, name) {
			t.Errorf("never reached: %s", name)
		}
	}
}

// A seed is everything: played again, alone or beside others, it is the same.
func TestSeedsReplay(t *testing.T) {
	play := func(parallel int) (string, sim.Report) {
		var trace bytes.Buffer
		o := sim.Options{Seeds: 20, FirstSeed: 500, Steps: 100, Parallel: parallel}
		if parallel == 1 {
			o.Trace = &trace
		}
		r := run(t, o)
		return trace.String(), r
	}
	one, a := play(1)
	again, b := play(1)
	_, c := play(2)
	if one == "" || one != again {
		t.Error("two plays of the same seeds differ")
	}
	for _, other := range []sim.Report{b, c} {
		if diff := cmp.Diff(a, other); diff != "" {
			t.Errorf("the same seeds gave another report (-first +other):\n%s", diff)
		}
	}
}

// A run in which nothing could happen is no proof.
func TestUnreachedStatesFail(t *testing.T) {
	r := run(t, sim.Options{Seeds: 1, FirstSeed: 1, Steps: 1, Parallel: 1})
	if r.OK() || !slices.Contains(r.Unreached, "claim lost") {
		t.Errorf("one step of one seed is fine, unreached are %v", r.Unreached)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := sim.Run(ctx, sim.Options{Seeds: 1 << 30, Steps: 200, Parallel: 2}); err == nil {
		t.Errorf("played %d seeds after the end of its context", r.Seeds)
	}
}

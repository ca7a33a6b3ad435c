package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
)

func TestSim(t *testing.T) {
	began := time.Now()
	r, err := sim.Run(context.Background(), sim.Options{Seeds: 400, FirstSeed: 1, Steps: 200, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d seeds, %d steps, %d entries, %d sends, %d effects in %s", r.Seeds, r.Steps, r.Entries, r.Sends, r.Effects, time.Since(began))
	for _, c := range r.Counters {
		t.Logf("%8d %s", c.Count, c.Name)
	}
	for _, v := range r.Violations {
		t.Errorf("%s: %s at step %d; %s", v.Invariant, v.Text, v.Step, v.Replay(200))
	}
}

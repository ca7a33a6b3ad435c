package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// calm is a replica whose source sees nothing of it.
type calm struct{ *world }

func (c calm) Measure(ctx context.Context, qs []measure.Query) []measure.Measurement {
	was := c.truth
	c.truth = func(string, time.Time) float64 { return 0 }
	defer func() { c.truth = was }()
	return c.world.Measure(ctx, qs)
}

// TestReplicasInTwoWeathers: two replicas that do not see the same take no turns
// at the brake in every sweep, and the one that sees the storm holds both.
func TestReplicasInTwoWeathers(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 10, broken)
	w.options = func(o *reconcile.Options) { o.Process, o.Shared = "a", true }
	w.start()
	other := w.made(func(o *reconcile.Options) { o.Process, o.Shared, o.Measurer = "b", true, calm{w} })
	both := func(d time.Duration) {
		for end := w.now.Add(d); w.now.Before(end); {
			w.r.Sweep(t.Context())
			other.Sweep(t.Context())
			w.pass(step30)
		}
	}
	both(12 * time.Minute)
	for i := range 6 {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	both(time.Hour)
	if n := w.kinds()[ledger.KindStorm]; n == 0 || n > 90 {
		t.Errorf("%d changes of the brake within 120 sweeps", n)
	}
	if n := len(w.actuator.Effects()); n != 0 {
		t.Errorf("%d effects", n)
	}
}

package reconcile_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestHintsChangeOnlyTheDelay: a hint is a look now instead of with the next
// sweep, measured afresh; a second one before hintInterval is none; and one that
// is lost costs the wait. What is done, and under which key, comes from what is
// measured.
func TestHintsChangeOnlyTheDelay(t *testing.T) {
	effects := func(interval time.Duration, hints bool) int {
		w := live(t)
		w.cfg.Sweep.Interval, w.cfg.Limits.HintInterval = interval, 30*time.Millisecond
		w.set.Services = w.set.Services[:1]
		w.set.Services[0].Remediation.HoldFor = time.Millisecond
		// Windows that are measured again in every sweep.
		o := &w.set.Services[0].Objectives[0]
		o.JudgeWindow, o.BurnRates = time.Second, []spec.BurnRate{{Short: time.Second, Long: time.Second, Factor: 6, Page: true}}
		w.start()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.r.Run(ctx) }()
		w.soon("first look", func(s *ledger.State) bool { a, ok := s.Service("a"); return ok && a.EverMet })
		time.Sleep(5 * time.Millisecond) // holdFor
		w.failing.Store(true)
		for end := time.Now().Add(time.Second); time.Now().Before(end) && len(w.actuator.Effects()) == 0; time.Sleep(10 * time.Millisecond) {
			if hints {
				w.r.Hint("a")
				w.r.Hint("nobody")
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return len(w.actuator.Effects())
	}
	if n := effects(time.Hour, true); n != 1 {
		t.Errorf("%d effects with hints and an hour between two sweeps, want 1", n)
	}
	if n := effects(time.Hour, false); n != 0 {
		t.Errorf("%d effects although the next sweep is an hour away", n)
	}
	if n := effects(20*time.Millisecond, false); n != 1 {
		t.Errorf("%d effects without hints, want the same one", n)
	}
}

// counted counts what is asked of the sources.
type counted struct {
	*world
	calls atomic.Int64
}

func (c *counted) Measure(ctx context.Context, qs []measure.Query) []measure.Measurement {
	c.calls.Add(1)
	time.Sleep(5 * time.Millisecond)
	return c.world.Measure(ctx, qs)
}

// TestHintsOfAWholeFleet: Alertmanager hints at everything at once when
// everything breaks. They are looked at together, as a sweep does, and each has
// its pass.
func TestHintsOfAWholeFleet(t *testing.T) {
	const n = 50
	w := live(t)
	w.cfg.Sweep.Interval, w.cfg.Limits.HintInterval = time.Hour, time.Hour
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range n {
		svc := one
		svc.Name = fmt.Sprintf("s%02d", i)
		svc.Remediation.Service = svc.Name
		svc.Remediation.Actions = nil
		w.set.Services = append(w.set.Services, svc)
	}
	source, passes := &counted{world: w}, atomic.Int64{}
	w.options = func(o *reconcile.Options) {
		o.Measurer = source
		o.OnPass = func(reconcile.Result) { passes.Add(1) }
	}
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.r.Run(ctx) }()
	reached := func(want int64) {
		for end := time.Now().Add(20 * time.Second); passes.Load() < want && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	}
	reached(n)
	time.Sleep(20 * time.Millisecond)
	before := source.calls.Load()
	for i := range n {
		w.r.Hint(fmt.Sprintf("s%02d", i))
	}
	reached(2 * n)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := passes.Load(); got < 2*n {
		t.Errorf("%d passes after %d hints, want %d", got, n, 2*n)
	}
	if got := source.calls.Load() - before; got > n/4 {
		t.Errorf("the sources were asked %d times for %d hints at once", got, n)
	}
}

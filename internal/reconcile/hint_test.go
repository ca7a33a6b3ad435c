package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
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

package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestReplicasDoNotTakeTurns: a replica that has just started measures a long
// window afresh, which the other holds for minutes. What is recorded rests on
// fresh values, so the one that holds an old value does not overrule it.
func TestReplicasDoNotTakeTurns(t *testing.T) {
	w := prepare(t)
	o := &w.set.Services[0].Objectives[0]
	o.BurnRates = []spec.BurnRate{{Short: 5 * time.Minute, Long: 24 * time.Hour, Factor: 6, Page: true}}
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Revision: "test"} } // Nothing is done about it.
	w.options = func(o *reconcile.Options) { o.Process, o.Shared = "a", true }
	w.start()
	a, broke := w.r, w.clock()
	w.breakNow(1)
	for w.clock().Before(broke.Add(80 * time.Minute)) {
		a.Sweep(t.Context())
		w.pass(step30)
	}
	if w.recorded() != compare.Met {
		t.Fatalf("the ledger says %s before the long window burns", w.recorded())
	}
	began, changes := len(w.entries()), 0
	for range 40 {
		b := w.made(func(o *reconcile.Options) { o.Process, o.Shared = "b", true })
		b.Sweep(t.Context())
		a.Sweep(t.Context())
		w.pass(step30)
	}
	for _, e := range w.entries()[began:] {
		if e.Kind == ledger.KindState {
			changes++
		}
	}
	if changes != 1 || w.recorded() != compare.Breached {
		t.Errorf("the state was recorded %d times, the last is %s: want %s, once", changes, w.recorded(), compare.Breached)
	}
}

// TestStopWhileStarting: a stop that comes before the start is recorded is no
// fault.
func TestStopWhileStarting(t *testing.T) {
	w := prepare(t)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.made(nil).Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
}

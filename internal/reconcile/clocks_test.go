package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/step"
)

func holdsFor(res reconcile.Result, code string) bool {
	for _, r := range res.Step.Reasons {
		if res.Step.Kind == step.Hold && r.Code == code {
			return true
		}
	}
	return false
}

// recorded is the state that the ledger holds of the service.
func (w *world) recorded() compare.State {
	w.t.Helper()
	s, err := ledger.Fold(w.entries())
	if err != nil {
		w.t.Fatal(err)
	}
	sv, _ := s.Service("checkout")
	return sv.State
}

// steal claims the key that is about to be claimed, with other bytes.
func (w *world) steal() {
	w.t.Helper()
	es := w.entries()
	window := gate.WindowAt(w.clock(), 10*time.Minute)
	claim := ledger.Claim{
		Key: gate.KeyOf("checkout", window), Digest: "other", Target: "webhook http://elsewhere/",
		Action: w.set.Services[0].Remediation.Actions[0], Expires: w.clock().Add(time.Minute),
	}
	_, err := w.store.Append(w.t.Context(), es[len(es)-1].Position(), func([]ledger.Entry) ([]ledger.Draft, error) {
		return []ledger.Draft{{Kind: ledger.KindClaim, Service: "checkout", Unique: "claim/" + string(claim.Key), Body: claim}}, nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestMovedClock: a clock that was set, forward or back, holds everything for a
// while, says so, and is a gap.
func TestMovedClock(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"a day ahead": 24 * time.Hour, "six seconds": 6 * time.Second, "back": -6 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.options = func(o *reconcile.Options) { o.Monotonic = w.monotonic }
			w.start()
			w.run(10 * time.Minute)
			w.breakNow(0.5)
			gaps := w.kinds()[ledger.KindGap]
			w.setClock(by)
			for range 4 {
				if res := w.sweep(); !holdsFor(res, gate.ReasonClock) && res.Assessment.Actionable() {
					t.Fatalf("after the clock was moved by %s: %s %v", by, res.Step.Kind, res.Step.Reasons)
				}
			}
			if n := len(w.actuator.Effects()); n != 0 {
				t.Errorf("%d effects under a moved clock", n)
			}
			if w.kinds()[ledger.KindGap] == gaps {
				t.Error("a moved clock is no gap in watching")
			}
			// By approval: how long the service was well before is not known any more.
			w.until("step once the clock has been steady", 20*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
		})
	}
}

// TestClockThatMovesAtTheLastMoment: between the second gate and the first byte
// the clock is looked at once more.
func TestClockThatMovesAtTheLastMoment(t *testing.T) {
	w := prepare(t)
	var from time.Time
	w.options = func(o *reconcile.Options) {
		o.Monotonic = w.monotonic
		o.Freezes = &lastMoment{freezer: w.freezer, at: func() {
			if from.IsZero() {
				from = w.clock()
				w.setClock(-10 * time.Minute)
			}
		}}
	}
	w.start()
	w.run(10 * time.Minute)
	w.breakNow(0.5)
	res := w.until("a send that is stopped", 20*time.Minute, func(r reconcile.Result) bool { return !from.IsZero() })
	if n := len(w.actuator.Journal()); n != 0 || res.Effect != execute.Failed {
		t.Errorf("%d requests left under a clock that was just moved; the effect is %s", n, res.Effect)
	}
}

// lastMoment does something when a send begins, after which only the last look
// is to come.
type lastMoment struct {
	*freezer
	at func()
}

func (l *lastMoment) Sending() (func(), error) {
	l.at()
	return l.freezer.Sending()
}

// TestSourceApart: what a source says of another moment is unknown, and people
// are told that the clocks are to blame.
func TestSourceApart(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(10 * time.Minute)
			w.skew = skew
			if res := w.sweep(); res.Assessment.State != compare.Unknown || res.Assessment.Reason != compare.ClockSkew {
				t.Fatalf("read %s (%s) from a source that is %s apart", res.Assessment.State, res.Assessment.Reason, skew)
			}
			w.run(12 * time.Minute)
			told := false
			for _, page := range w.pager.open() {
				told = told || strings.Contains(page.Text, "the clocks of this host and of main are")
			}
			if !told {
				t.Errorf("nobody is told: %+v", w.pager.open())
			}
			w.skew = 0
			if res := w.sweep(); res.Assessment.State != compare.Met {
				t.Errorf("with clocks that agree: %s", res.Assessment.State)
			}
		})
	}
}

// TestClockSetBackTellsPeople: what the ledger recorded then lies in the future;
// people are told as soon as ever.
func TestClockSetBackTellsPeople(t *testing.T) {
	for name, broken := range map[string]float64{"in the middle of a breach": 0.5, "while nothing can be read": 0} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.options = func(o *reconcile.Options) {
				o.Monotonic, o.StoreClock = w.monotonic, func(ctx context.Context) (time.Time, error) { return w.store.Clock(ctx) }
			}
			w.start()
			w.run(10 * time.Minute)
			w.setClock(-24 * time.Hour)
			if broken > 0 {
				w.breakNow(broken)
			} else {
				w.skew = 24 * time.Hour
			}
			w.run(25 * time.Minute)
			if len(w.pager.open()) == 0 {
				t.Errorf("nobody is told in 25 minutes:\n%s", w.dump())
			}
		})
	}
}

// TestDriftIsNoMove: a clock that is slewed by a little is not held for.
func TestDriftIsNoMove(t *testing.T) {
	w := prepare(t)
	w.options = func(o *reconcile.Options) { o.Monotonic = w.monotonic }
	w.start()
	w.run(10 * time.Minute)
	w.breakNow(0.5)
	for range 20 {
		w.setClock(3 * time.Second)
		if res := w.sweep(); applied(res) {
			return
		}
	}
	t.Fatalf("nothing was done under a slow drift:\n%s", w.dump())
}

// TestStoreClock: the store's clock gives the window; one that is far apart
// holds everything.
func TestStoreClock(t *testing.T) {
	tests := map[string]struct {
		reason string
		ahead  time.Duration
		held   bool
	}{
		"agrees":       {"the window is the host's own", 0, false},
		"a bit ahead":  {"the key is of the store's window", 4 * time.Second, false},
		"a bit behind": {"which may be the earlier one", -4 * time.Second, false},
		"apart":        {"nobody knows which window it is", 6 * time.Second, true},
		"far behind":   {"nobody knows which window it is", -time.Hour, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.options = func(o *reconcile.Options) {
				o.StoreClock = func(context.Context) (time.Time, error) { return w.clock().Add(tt.ahead), nil }
			}
			w.start()
			w.run(10 * time.Minute)
			w.breakNow(0.5)
			var acted *reconcile.Result
			for range 20 {
				at := w.clock()
				res := w.sweep()
				if applied(res) {
					acted = &res
					if want := gate.KeyOf("checkout", gate.WindowAt(at.Add(tt.ahead), 10*time.Minute)); res.Key != want {
						t.Errorf("%s: key %s, want %s", tt.reason, res.Key, want)
					}
					break
				}
			}
			if (acted == nil) != tt.held {
				t.Errorf("%s: acted %v", tt.reason, acted != nil)
			}
		})
	}
}

// TestStoreThatDoesNotAnswer pages, and nothing is done.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	w := prepare(t)
	gone := errors.New("the file is gone")
	w.options = func(o *reconcile.Options) {
		o.StoreClock = func(context.Context) (time.Time, error) { return time.Time{}, gone }
	}
	w.start()
	w.run(10 * time.Minute)
	w.breakNow(0.5)
	w.run(5 * time.Minute)
	if page, ok := w.pager.open()["ledger"]; !ok || !strings.Contains(page.Text, gone.Error()) {
		t.Errorf("no page of the ledger: %+v", w.pager.open())
	}
}

// TestLedgerFault: an agent whose ledger was unusable from the start observes
// and pages.
func TestLedgerFault(t *testing.T) {
	w := prepare(t)
	fault := errors.New("the ledger is older than what this host has seen of it")
	w.options = func(o *reconcile.Options) { o.LedgerFault = fault }
	w.start()
	before := len(w.entries())
	w.breakNow(0.5)
	w.run(30 * time.Minute)
	if len(w.actuator.Effects()) != 0 || len(w.entries()) != before {
		t.Errorf("%d effects and %d new entries", len(w.actuator.Effects()), len(w.entries())-before)
	}
	open := w.pager.open()
	if page, ok := open["ledger"]; !ok || !strings.Contains(page.Text, fault.Error()) {
		t.Errorf("no page of the ledger: %+v", open)
	}
	if len(open) != 2 {
		t.Errorf("the missed SLO reached nobody: %+v", open)
	}
	if ready := w.r.Ready(); !strings.Contains(ready, fault.Error()) {
		t.Errorf("ready says %q", ready)
	}
}

// TestReplicasThatDiffer: a reading does not overrule another replica's that is
// younger than two sweeps.
func TestReplicasThatDiffer(t *testing.T) {
	w := prepare(t)
	w.options = func(o *reconcile.Options) { o.Process = "a" }
	w.start()
	w.run(10 * time.Minute)
	a := w.r
	b := w.made(func(o *reconcile.Options) { o.Process, o.Shared = "b", true })
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Revision: "test"} } // Nothing is done about it.
	w.breakNow(0.5)
	for range 20 {
		if a.Sweep(t.Context()); w.recorded() == compare.Breached {
			break
		}
		w.pass(step30)
	}
	before := w.recorded()
	w.errorRatio = func(time.Time) float64 { return 0 } // what b sees, and a has not yet
	entries := len(w.entries())
	res := b.Sweep(t.Context())[0]
	if !holdsFor(res, "replicas-differ") || w.recorded() != before {
		t.Errorf("b: %s %v, the ledger says %s", res.Step.Kind, res.Step.Reasons, w.recorded())
	}
	if n := len(w.entries()) - entries; n > 0 {
		for _, e := range w.entries()[entries:] {
			if e.Kind == ledger.KindState || e.Kind == ledger.KindDecision {
				t.Errorf("b wrote %s", e.Kind)
			}
		}
	}
	w.pass(2 * time.Minute)
	if b.Sweep(t.Context()); w.recorded() != "met" {
		t.Errorf("after two sweeps b's reading counts, the ledger says %s", w.recorded())
	}
}

// TestKeyConflict: other bytes under the same key are refused, and paged.
func TestKeyConflict(t *testing.T) {
	w := newWorld(t)
	w.run(10 * time.Minute)
	rule, done := w.rule, false
	w.rule = func(input []byte) gate.Ruling {
		if !done { // Another replica, with other documents, is a moment faster.
			done = true
			w.steal()
		}
		return rule(input)
	}
	w.breakNow(0.5)
	res := w.until("refused claim", 20*time.Minute, func(r reconcile.Result) bool { return holdsFor(r, "claim-lost") })
	if n := len(w.actuator.Effects()); n != 0 {
		t.Errorf("%d effects under %s, which another holds", n, res.Key)
	}
	page, ok := w.pager.open()["key-conflict/checkout"]
	if !ok || !strings.Contains(page.Text, string(res.Key)) {
		t.Errorf("nobody is told: %+v", w.pager.open())
	}
	w.run(15 * time.Minute)
	if _, still := w.pager.open()["key-conflict/checkout"]; still {
		t.Error("the page outlives the window")
	}
}

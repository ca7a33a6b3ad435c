package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// errCrash stands for a process that is gone: nothing of its pass comes after it.
var errCrash = errors.New("the process died")

// dying is a store whose process dies at one kind of entry: before it is on the
// disk, or right after.
type dying struct {
	ledger.Store
	mu    sync.Mutex
	kind  ledger.Kind // "": it lives
	after bool
	dead  bool
}

func (d *dying) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errCrash
	}
	hit := false
	got, err := d.Store.Append(ctx, after, func(since []ledger.Entry) ([]ledger.Draft, error) {
		drafts, err := plan(since)
		hit = false
		for _, x := range drafts {
			hit = hit || d.kind != "" && x.Kind == d.kind
		}
		if hit && !d.after {
			return nil, errCrash
		}
		return drafts, err
	})
	if hit && (err == nil || errors.Is(err, errCrash)) {
		d.dead = true
		return nil, errCrash
	}
	return got, err
}

// window is the action window of the calls that are counted.
func (w *world) window() gate.WindowID {
	return gate.WindowAt(w.clock(), w.set.Services[0].Remediation.ActionWindow)
}

// askedIn counts the calls by window while it is in force.
func (w *world) askedIn() map[string]int {
	n := map[string]int{}
	w.asking = func(context.Context) { n[w.window().String()]++ }
	return n
}

// B10: whatever happens in a window, the proposer is called once in it. The only
// window with fewer is one whose process died between the entry that it will ask
// and the call itself: who asks then cannot know that nobody did.
func TestOneModelCallPerWindow(t *testing.T) {
	approval := gate.Ruling{Revision: "test", Approval: []gate.Rule{{Reason: "ask", Package: "setpoint.gate"}}}
	type scene struct {
		name string
		// kind and after: where the process dies; "" nowhere.
		kind  ledger.Kind
		after bool
		prep  func(w *world)
		want  int
	}
	dies := func(kind ledger.Kind, after bool, want int) scene {
		when := "before"
		if after {
			when = "after"
		}
		return scene{name: fmt.Sprintf("dies %s %s", when, kind), kind: kind, after: after, want: want}
	}
	held := 0
	for _, c := range []scene{
		dies(ledger.KindAsked, false, 1), dies(ledger.KindAsked, true, 0),
		dies(ledger.KindProposal, false, 1), dies(ledger.KindProposal, true, 1),
		dies(ledger.KindDecision, false, 1), dies(ledger.KindDecision, true, 1),
		dies(ledger.KindClaim, false, 1), dies(ledger.KindClaim, true, 1),
		{name: "nothing happens", want: 1},
		{name: "the policy is broken for a while", want: 1, prep: func(w *world) {
			held = 0
			allow := w.rule
			w.rule = func(in []byte) gate.Ruling {
				if held++; held < 6 {
					return gate.Ruling{Revision: "test", Fault: gate.FaultError + ": broken"}
				}
				return allow(in)
			}
		}},
		{name: "the proposer has nothing", want: 1, prep: func(w *world) {
			w.propose = func(propose.Request) propose.Proposal {
				return propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}
			}
		}},
		{name: "the proposer is broken", want: 1, prep: func(w *world) {
			w.propose = func(propose.Request) propose.Proposal {
				return propose.Proposal{Kind: propose.KindMalformed, Fault: "malformed: it was"}
			}
		}},
		{name: "people are asked", want: 1, prep: func(w *world) { w.rule = func([]byte) gate.Ruling { return approval } }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := prepare(t)
			disk := &dying{}
			w.options = func(o *reconcile.Options) {
				disk = &dying{Store: o.Store}
				o.Store = disk
			}
			if c.prep != nil {
				c.prep(w)
			}
			w.start()
			w.healthy()
			if n := w.asked.Load(); n != 0 {
				t.Fatalf("the proposer was called %d times about a healthy service", n)
			}
			w.breakNow(0.3)
			calls := w.askedIn()
			disk.mu.Lock()
			disk.kind, disk.after = c.kind, c.after
			disk.mu.Unlock()
			first := w.firstAsked(disk)
			for end := first.End(); w.clock().Before(end); {
				_ = w.sweep()
				if disk.dead {
					w.restart()
				}
			}
			if c.kind != "" && disk.kind != "" {
				t.Fatal("the process never died")
			}
			if got := calls[first.String()]; got != c.want {
				t.Errorf("%d calls in %s, want %d:\n%s", got, first, c.want, w.dump())
			}
		})
	}
}

// firstAsked sweeps until the ledger has a question, or its process died at it,
// and gives the window of it.
func (w *world) firstAsked(disk *dying) gate.WindowID {
	w.t.Helper()
	for end := w.clock().Add(20 * time.Minute); w.clock().Before(end); {
		window := w.window()
		_ = w.sweep()
		if disk.dead {
			w.restart()
			return window
		}
		if w.asked.Load() > 0 {
			return window
		}
	}
	w.t.Fatalf("nobody was asked:\n%s", w.dump())
	return gate.WindowID{}
}

// A ticket that waits asks nobody else, through a hundred passes and all the
// windows that go by.
func TestPendingApprovalCallsNobody(t *testing.T) {
	w := newWorld(t)
	w.set.Services[0].Remediation.ApprovalFor = 2 * time.Hour
	w.rule = func([]byte) gate.Ruling {
		return gate.Ruling{Revision: "test", Approval: []gate.Rule{{Reason: "ask", Package: "setpoint.gate"}}}
	}
	w.restart()
	w.healthy()
	w.breakNow(0.3)
	w.until("ticket", 20*time.Minute, func(reconcile.Result) bool { return w.kinds()[ledger.KindTicket] > 0 })
	for range 100 {
		w.sweep()
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("%d calls through a hundred passes of a pending approval, want 1", n)
	}
	w.r.View(func(s *ledger.State) {
		if ticket, ok := s.OpenTicket("checkout"); !ok || ticket.State != approve.Open {
			t.Errorf("the ticket is %v, want it open still", ticket.State)
		}
	})
}

// Two replicas that sweep at the same time over one store call once between
// them in each window.
func TestTwoReplicasCallOnce(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	other := w.made(nil)
	for range 4 { // it must see for itself, twice
		other.Sweep(t.Context())
		w.pass(step30)
	}
	w.propose = func(propose.Request) propose.Proposal {
		return propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}
	}
	var mu sync.Mutex
	calls := map[string]int{}
	w.asking = func(context.Context) {
		mu.Lock()
		defer mu.Unlock()
		calls[w.window().String()]++
	}
	w.breakNow(0.3)
	for range 2 * 60 {
		var wg sync.WaitGroup
		for _, r := range []*reconcile.Reconciler{w.r, other} {
			wg.Go(func() { r.Sweep(t.Context()) })
		}
		wg.Wait()
		w.pass(step30)
	}
	if len(calls) < 5 {
		t.Fatalf("calls in %d windows of an hour's breach: %v", len(calls), calls)
	}
	for window, n := range calls {
		if n != 1 {
			t.Errorf("%d calls in window %s, want 1", n, window)
		}
	}
}

// The same fault has the same effects in each rolling hour, however fast the
// loop runs: caps, spacing and windows are counted in time and not in passes.
func TestPaceDoesNotGrowWithTheLoop(t *testing.T) {
	perHour := func(t *testing.T, speed int) (most, all int) {
		w := prepare(t)
		w.cfg.Limits.EffectsPerServicePerHour, w.cfg.Limits.EffectsPerHour = 3, 3
		w.cfg.Sweep.Interval = 50 * time.Second / time.Duration(speed)
		r := &w.set.Services[0].Remediation
		r.Budget.Capacity, w.cfg.Budget.Capacity = 1000, 1000
		r.ActionWindow = 5 * time.Minute
		next := int64(5)
		w.propose = func(propose.Request) propose.Proposal {
			next++ // upwards only: what swings is stopped for another reason
			return propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": min(next, 20)}}
		}
		w.start()
		sweepFor := func(d time.Duration) {
			for end := w.clock().Add(d); w.clock().Before(end); w.pass(w.cfg.Sweep.Interval) {
				for _, res := range w.r.Sweep(t.Context()) {
					if res.Err != nil {
						t.Fatal(res.Err)
					}
				}
			}
		}
		sweepFor(15 * time.Minute)
		w.breakNow(0.3)
		sweepFor(4 * time.Hour)
		var at []time.Time
		for _, e := range w.actuator.Effects() {
			at = append(at, e.Time)
		}
		for i, from := range at {
			n := 0
			for _, t := range at[i:] {
				if t.Sub(from) < time.Hour {
					n++
				}
			}
			most = max(most, n)
		}
		return most, len(at)
	}
	slowMost, slowAll := perHour(t, 1)
	fastMost, fastAll := perHour(t, 50)
	t.Logf("effects in a rolling hour: %d at 1x, %d at 50x; in four hours %d and %d", slowMost, fastMost, slowAll, fastAll)
	if slowMost != 3 || fastMost != slowMost || fastAll != slowAll {
		t.Errorf("at 1x %d effects in a rolling hour (%d in all), at 50x %d (%d), want 3 in both and as many in all", slowMost, slowAll, fastMost, fastAll)
	}
}

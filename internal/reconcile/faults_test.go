package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// ask brings the world to an open ticket and returns its id.
func (w *world) ask() string {
	w.t.Helper()
	w.set.Services[0].Remediation.Actions[0].Class = spec.ClassApproval
	w.restart()
	w.healthy()
	w.breakNow(0.3)
	w.until("question", 30*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	var id string
	w.r.View(func(s *ledger.State) { ticket, _ := s.OpenTicket("checkout"); id = ticket.ID })
	return id
}

// A deny that is recorded before started still stops the effect, even while
// the second gate is at work.
func TestDenyBetweenClaimAndStart(t *testing.T) {
	w := newWorld(t)
	id := w.ask()
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true}); err != nil {
		t.Fatal(err)
	}
	grant := w.rule
	w.rule = func(in []byte) gate.Ruling {
		if n := w.kinds(); n[ledger.KindClaim] == 1 && n[ledger.KindStarted] == 0 {
			if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:bob", Via: "cli", Reason: "stop"}); err != nil {
				t.Errorf("the deny was refused: %v", err)
			}
		}
		return grant(in)
	}
	if res := w.sweep(); res.Effect != execute.Void {
		t.Errorf("effect = %s, want void", res.Effect)
	}
	if len(w.actuator.Journal()) != 0 {
		t.Error("sent although a deny was recorded before the start")
	}
}

// A service that was renamed while its action awaited the outcome does not
// lock the target for ever.
func TestRenamedServiceFreesItsTarget(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	w.until("effect", 15*time.Minute, applied)
	w.set.Digest = "set-2"
	w.set.Services[0].Name, w.set.Services[0].Digest = "renamed", "doc-2"
	w.set.Services[0].Remediation.Service = "renamed"
	if err := w.r.Reload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.run(30 * time.Minute)
	w.r.View(func(s *ledger.State) {
		if len(s.Unsettled) != 0 {
			t.Errorf("still locked: %v", s.Unsettled)
		}
		for key, e := range s.Effects {
			if e.Service == "checkout" && e.Outcome != compare.OutcomeUnknown {
				t.Errorf("%s of the removed service is %s, want unknown", key, e.Outcome)
			}
		}
	})
}

// The effect in doubt of a removed service is asked about all the same.
func TestRemovedServiceInDoubt(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.actuator.SetMode(executetest.ModeDropReply)
	w.breakNow(0.3)
	w.until("effect in doubt", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.InDoubt })
	w.set = spec.Set{Digest: "set-2"}
	if err := w.r.Reload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.r.Sweep(t.Context())
		w.pass(step30)
	}
	w.r.View(func(s *ledger.State) {
		for key, e := range s.Effects {
			if e.Effect != execute.Landed {
				t.Errorf("%s is %s, want landed", key, e.Effect)
			}
		}
	})
}

// A disk that is full: nothing is done, people learn of the ledger and of the
// service, and every page ends when it is over.
func TestFullDiskPagesAndEnds(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.faulty.fill(errors.New("database or disk is full"))
	w.breakNow(0.3)
	w.run(30 * time.Minute)
	if w.r.Ready() == "" {
		t.Error("ready although the ledger cannot be written")
	}
	if len(w.actuator.Journal()) != 0 {
		t.Error("something was sent without a ledger")
	}
	open := w.pager.open()
	var service, fault bool
	for id, p := range open {
		service = service || p.Service == "checkout"
		fault = fault || id == "ledger"
	}
	if !service || !fault {
		t.Fatalf("pages = %v, want one for the service and one for the ledger", open)
	}
	w.faulty.fill(nil)
	w.errorRatio = func(time.Time) float64 { return 0 }
	w.run(15 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Errorf("pages that nothing ends: %v", open)
	}
	if why := w.r.Ready(); why != "" {
		t.Errorf("not ready: %s", why)
	}
}

// A sweep whose look takes long is no gap: the service is being watched.
func TestSlowLookIsNoGap(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	before := w.kinds()[ledger.KindGap]
	w.slow = 3 * time.Minute
	w.run(30 * time.Minute)
	if got := w.kinds()[ledger.KindGap]; got != before {
		t.Errorf("%d gaps were recorded while the source was slow", got-before)
	}
	w.slow = 0
	w.pass(10 * time.Minute) // the process was stopped
	w.sweep()
	if got := w.kinds()[ledger.KindGap]; got != before+1 {
		t.Errorf("%d gaps after a pause, want one\n%s", got-before, lines(w.dump(), "gap"))
	}
}

func lines(text, with string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, with) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// A client that hangs up in the middle says nothing about the ledger.
func TestHungUpClientIsNoLedgerFault(t *testing.T) {
	w := newWorld(t)
	id := w.ask()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.r.Answer(ctx, approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true}); err == nil {
		t.Error("a cancelled answer was recorded")
	}
	if why := w.r.Ready(); why != "" {
		t.Errorf("not ready: %s", why)
	}
	for id := range w.pager.open() {
		if id == "ledger" {
			t.Error("the ledger was reported because a client hung up")
		}
	}
}

// Documents that were edited while a pass was under way are the ones that
// count: during the call of a model, and between the claim and the send.
func TestEditedDocumentsStopThePass(t *testing.T) {
	edits := map[string]func(w *world){
		"Observe": func(w *world) { w.set.Services[0].Remediation.Mode = spec.Observe },
		"Class":   func(w *world) { w.set.Services[0].Remediation.Actions[0].Class = spec.ClassApproval },
		"Removed": func(w *world) { w.set.Services = nil },
	}
	for name, edit := range edits {
		for when, inModel := range map[string]bool{"InModel": true, "InGate": false} {
			t.Run(name+when, func(t *testing.T) {
				w := newWorld(t)
				w.healthy()
				w.breakNow(0.3)
				edited := false
				reload := func() {
					if edited {
						return
					}
					edited = true
					w.set.Services = slices.Clone(w.set.Services)
					edit(w)
					w.set.Digest = "set-2"
					for i := range w.set.Services {
						w.set.Services[i].Digest = "doc-2"
					}
					if err := w.r.Reload(t.Context(), nil); err != nil {
						t.Errorf("reload: %v", err)
					}
				}
				ask, grant := w.propose, w.rule
				w.propose = func(r propose.Request) propose.Proposal {
					if inModel {
						reload()
					}
					return ask(r)
				}
				w.rule = func(in []byte) gate.Ruling {
					if !inModel && w.kinds()[ledger.KindClaim] == 1 {
						reload()
					}
					return grant(in)
				}
				for range 40 {
					w.r.Sweep(t.Context())
					w.pass(step30)
				}
				if !edited {
					t.Fatal("the edit never came")
				}
				if n := len(w.actuator.Journal()); n != 0 {
					t.Errorf("%d sends by documents that were edited before", n)
				}
			})
		}
	}
}

// A site that only observes is not paged for its source.
func TestObserveIsNotPagedForASource(t *testing.T) {
	w := newWorld(t)
	w.cfg.Limits.MaxMode = spec.Observe
	w.restart()
	w.healthy()
	from := w.clock()
	w.unknown = func(at time.Time) measure.Reason {
		if at.Before(from) {
			return ""
		}
		return measure.SourceError
	}
	w.run(30 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Errorf("pages = %v, want none", open)
	}
}

// A chain that does not follow is no passing fault: nothing but a start clears
// it, and its page does not flap.
func TestBrokenChainStaysReported(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.faulty.fill(fmt.Errorf("%w: it ends at entry 3, this writer left it at 9", ledger.ErrCorrupt))
	w.breakNow(0.3)
	w.run(6 * time.Minute)
	w.faulty.fill(nil)
	w.run(20 * time.Minute)
	if w.r.Ready() == "" {
		t.Error("ready again although the chain is broken")
	}
	if len(w.actuator.Journal()) != 0 {
		t.Error("something was sent on a broken chain")
	}
	ended := 0
	w.pager.mu.Lock()
	for _, p := range w.pager.sent {
		if p.ID == "ledger" && !p.EndedAt.IsZero() {
			ended++
		}
	}
	w.pager.mu.Unlock()
	if _, open := w.pager.open()["ledger"]; !open || ended != 0 {
		t.Errorf("the ledger's page is open: %v, and ended %d times", open, ended)
	}
}

// A ledger that was broken until a restart: what receivers were sent without a
// record ends all the same.
func TestUnrecordedPagesEndAfterARestart(t *testing.T) {
	w := prepare(t)
	folder := freezefile.New(t.TempDir(), w.clock)
	w.options = func(o *reconcile.Options) { o.Loose = folder }
	w.start()
	w.healthy()
	w.faulty.fill(errors.New("database or disk is full"))
	w.breakNow(0.3)
	w.run(30 * time.Minute)
	if len(w.pager.open()) != 2 {
		t.Fatalf("pages = %v, want one for the service and one for the ledger", w.pager.open())
	}
	w.errorRatio = func(time.Time) float64 { return 0 }
	w.restart()
	w.run(15 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Errorf("pages that nothing ends: %v", open)
	}
	if left, err := folder.KeptPages(); err != nil || len(left) != 0 {
		t.Errorf("still kept: %v, %v", left, err)
	}
}

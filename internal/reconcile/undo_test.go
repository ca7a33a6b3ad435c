package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// harmed lets an action make everything worse, and gives the pass that judged it.
func (w *world) harmed() reconcile.Result {
	w.t.Helper()
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	w.breakNow(0.9)
	return w.until("outcome", 30*time.Minute, judged)
}

// wrote are the parameters of each effect, in the actuator's own order.
func (w *world) wrote() []any {
	var out []any
	for _, e := range w.actuator.Effects() {
		out = append(out, e.Parameters["replicas"])
	}
	return out
}

func (w *world) effect(i int) *ledger.Effect {
	w.t.Helper()
	var e *ledger.Effect
	w.r.View(func(s *ledger.State) {
		if i < len(s.EffectOrder) {
			e = s.Effects[s.EffectOrder[i]]
		}
	})
	if e == nil {
		w.t.Fatalf("there is no effect %d:\n%s", i, w.dump())
	}
	return e
}

// TestUndo: what measurement says made things worse is put back by the loop
// itself, once, at once and under a key of its own, with an empty balance and
// inside cooldown and spacing. Nobody is asked.
func TestUndo(t *testing.T) {
	w := newWorld(t)
	if res := w.harmed(); res.Outcome != compare.OutcomeWorsened || res.Effect != execute.Applied {
		t.Fatalf("outcome %s, effect %s in the same pass: want worsened, and taken back at once\n%s", res.Outcome, res.Effect, w.dump())
	}
	asked := w.asked.Load()
	if diff := cmp.Diff([]any{int64(6), int64(4)}, w.wrote()); diff != "" {
		t.Errorf("the actuator got (-want +got):\n%s", diff)
	}
	first, back := w.effect(0), w.effect(1)
	if !back.Claim.Undo || back.Claim.Undoes != first.Claim.Key || back.Claim.Key == first.Claim.Key {
		t.Errorf("the undo's claim is %+v", back.Claim)
	}
	if asked != 1 {
		t.Errorf("the proposer was asked %d times: an undo is the loop's own", asked)
	}
	w.breakNow(0.3) // as before the action
	w.run(40 * time.Minute)
	if got := w.effect(1).Outcome; got != compare.OutcomeImproved {
		t.Errorf("the undo is judged like any effect: %s, want improved", got)
	}
	w.r.View(func(s *ledger.State) {
		var cost float64
		for _, c := range s.Charges() {
			cost += c.Cost
		}
		if cost != 2 {
			t.Errorf("%v is charged, want 2: an undo that helped costs nothing", cost)
		}
		for _, key := range s.EffectOrder[2:] {
			if s.Effects[key].Claim.Undo {
				t.Error("it was undone twice")
			}
		}
	})
}

// TestUndoOfTheWindowItself: the window of the harmful action is spent, so the
// undo takes the next one, and that is spent for everything else.
func TestUndoTakesTheFirstFreeKey(t *testing.T) {
	w := prepare(t)
	r := &w.set.Services[0].Remediation
	r.ActionWindow, r.EscalateWithin = time.Hour, 2*time.Hour
	w.start()
	w.harmed()
	first, back := w.effect(0).Claim.Key, w.effect(1).Claim.Key
	one, _ := first.Window("checkout")
	two, _ := back.Window("checkout")
	if two.Start != one.End().Unix() || two.Length != 3600 {
		t.Errorf("the undo's key is %s after %s", back, first)
	}
	w.run(time.Hour)
	if n := len(w.actuator.Effects()); n != 2 {
		t.Errorf("%d effects although both windows are spent", n)
	}
}

// TestUndoOfAForeignChange: what somebody else wrote meanwhile is not ours to
// take back, and people hear of it at once.
func TestUndoOfAForeignChange(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	w.breakNow(0.9)
	w.actuator.SetState("replicas", 9)
	res := w.until("outcome", 30*time.Minute, judged)
	if res.Step.Kind != step.Escalate || !hasReason(res.Decision.Reasons, gate.ReasonForeignChange) {
		t.Fatalf("step %s %v, want escalate for foreign-change", res.Step.Kind, res.Step.Reasons)
	}
	if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) {
		t.Errorf("pages: %s", got)
	}
	w.run(2 * time.Minute)
	if n := len(w.actuator.Effects()); n != 1 {
		t.Errorf("%d effects, want the first alone", n)
	}
}

// reasons are those of the open pages, in words.
func (p *pager) reasons() string {
	var out []string
	for id, page := range p.open() {
		out = append(out, id+" "+page.Now+": "+page.Summary)
	}
	return strings.Join(out, "\n")
}

// TestUndoIsHeld: what binds an undo holds it, people hear of it at once, and it
// runs when that has passed, whatever was proposed meanwhile.
func TestUndoIsHeld(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	w.breakNow(0.9)
	w.freezer.freeze(ledger.Freeze{ID: "f1", By: "os:alice", Reason: "migration", At: w.clock()})
	res := w.until("outcome", 30*time.Minute, judged)
	if res.Step.Kind != step.Hold || !hasReason(res.Step.Reasons, gate.ReasonFreeze) {
		t.Fatalf("step %s %v, want hold for freeze", res.Step.Kind, res.Step.Reasons)
	}
	if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) || !strings.Contains(got, "migration") {
		t.Errorf("pages: %s", got)
	}
	w.restart()
	w.run(5 * time.Minute)
	if err := w.r.Thaw(t.Context(), "f1", "os:alice", "done"); err != nil {
		t.Fatal(err)
	}
	w.until("undo", 10*time.Minute, applied)
	if diff := cmp.Diff([]any{int64(6), int64(4)}, w.wrote()); diff != "" {
		t.Errorf("the actuator got (-want +got):\n%s", diff)
	}
	if got := w.pager.reasons(); strings.Contains(got, escalate.UndoHeld) {
		t.Errorf("the page still says that it is not taken back: %s", got)
	}
}

// TestUndoByApproval: mode binds an undo. A person's no is the end of it, and
// the page says whose.
func TestUndoByApproval(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	w.breakNow(0.9)
	svc := &w.set.Services[0]
	svc.Remediation.Mode, svc.Digest, w.set.Digest = spec.Approval, "doc-2", "set-2"
	if err := w.r.Reload(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if res := w.until("outcome", 30*time.Minute, judged); res.Step.Kind != step.Ask {
		t.Fatalf("step %s %v, want ask", res.Step.Kind, res.Step.Reasons)
	}
	w.answer(false)
	w.run(2 * time.Minute)
	if n := len(w.actuator.Effects()); n != 1 {
		t.Errorf("%d effects after a no", n)
	}
	if got := w.pager.reasons(); !strings.Contains(got, "was denied") {
		t.Errorf("pages: %s", got)
	}
}

// answer is alice's, to the one open ticket.
func (w *world) answer(yes bool) {
	w.t.Helper()
	var id string
	w.r.View(func(s *ledger.State) {
		for _, name := range s.ServiceNames() {
			if t, ok := s.OpenTicket(name); ok {
				id = t.ID
			}
		}
	})
	if _, err := w.r.Answer(w.t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: yes, Reason: "test"}); err != nil {
		w.t.Fatal(err)
	}
}

// TestDemotion: two outcomes that made things worse cost the action a rung, in
// the ledger, whatever the balance and whether they came in a row; a person's
// word raises it again.
func TestDemotion(t *testing.T) {
	w := prepare(t)
	r := &w.set.Services[0].Remediation
	r.Actions[0].Reversal, r.Actions[0].Parameters[0].MaximumFactor = spec.Transient, 0
	r.Budget.Capacity = 100
	w.cfg.Budget.Capacity = 100
	w.start()
	w.harmed()
	if got := w.ceiling(); got != gate.Auto {
		t.Fatalf("one is paid for: the ceiling is %s", got)
	}
	w.breakNow(0.3) // not in a row: the next one improves
	w.until("applied effect", time.Hour, applied)
	w.breakNow(0.05)
	if res := w.until("outcome", 30*time.Minute, judged); res.Outcome != compare.OutcomeImproved {
		t.Fatalf("outcome %s, want improved", res.Outcome)
	}
	w.breakNow(0.4)
	w.until("applied effect", 2*time.Hour, applied)
	w.breakNow(0.9)
	w.until("outcome", 30*time.Minute, judged)
	if got := w.ceiling(); got != gate.Approval {
		t.Errorf("the second costs a rung: the ceiling is %s\n%s", got, w.dump())
	}
	w.restart()
	if got := w.ceiling(); got != gate.Approval {
		t.Errorf("a restart raised it to %s", got)
	}
	raised := ledger.Ceiling{Action: "scale", To: gate.Auto, By: "os:alice", Reason: "mended"}
	if err := w.r.Ceiling(t.Context(), "checkout", raised, true); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Minute)
	if got := w.ceiling(); got != gate.Auto {
		t.Errorf("a person's word was overruled: the ceiling is %s", got)
	}
}

func (w *world) ceiling() (v gate.Verdict) {
	w.r.View(func(s *ledger.State) { v = s.Ceiling("checkout", "scale", w.clock()) })
	return v
}

package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// healthy lets the service be met for longer than holdFor, so that its
// documents are proven and two reads were made.
func (w *world) healthy() {
	w.t.Helper()
	for _, res := range w.run(12 * time.Minute) {
		if res.Err != nil || res.Step.Kind != step.Idle {
			w.t.Fatalf("healthy pass: %s %v, error %v", res.Step.Kind, res.Step.Reasons, res.Err)
		}
	}
}

// The whole way once: a breach is acted on once, judged by measurement, and
// left alone after recovery.
func TestActsOnceAndIsJudgedByMeasurement(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	quiet := len(w.entries())
	if quiet > 6 {
		t.Errorf("a healthy service wrote %d entries:\n%s", quiet, w.dump())
	}
	w.breakNow(0.3)
	res := w.until("applied effect", 15*time.Minute, applied)
	if res.Decision.Verdict != gate.Auto {
		t.Errorf("verdict = %s, want auto", res.Decision.Verdict)
	}
	w.breakNow(0) // the scale helped
	res = w.until("outcome", 20*time.Minute, judged)
	if res.Outcome != compare.OutcomeRecovered {
		t.Errorf("outcome = %s, want recovered", res.Outcome)
	}
	w.run(30 * time.Minute)
	effects := w.actuator.Effects()
	if len(effects) != 1 {
		t.Fatalf("%d effects in the actuator's journal, want 1:\n%s", len(effects), w.dump())
	}
	w.r.View(func(s *ledger.State) {
		e := s.Effects[gate.Key(effects[0].Key)]
		if e == nil || e.Claim.Digest != effects[0].Digest {
			t.Errorf("the journal's digest %s is not the claimed one", effects[0].Digest)
		}
		if got := s.Services["checkout"].Episode; got != "" {
			t.Errorf("episode %s is still open", got)
		}
		for _, c := range s.Charges() {
			if c.Cost != 0 {
				t.Errorf("a recovered action still costs %v", c.Cost)
			}
		}
	})
	if w.asked.Load() != 1 {
		t.Errorf("the proposer was asked %d times, want once", w.asked.Load())
	}
	if got := w.kinds()[ledger.KindClaim]; got != 1 {
		t.Errorf("%d claims, want 1", got)
	}
}

// An action that does not help pays, and the empty budget turns the next into
// a question.
func TestUselessActionsSpendPermission(t *testing.T) {
	w := newWorld(t)
	w.set.Services[0].Remediation.Budget.Capacity = 2
	w.restart()
	w.healthy()
	w.breakNow(0.3)
	w.until("applied effect", 15*time.Minute, applied)
	// The pass that judges may ask at once: the window is a new one by then.
	res := w.until("outcome", 30*time.Minute, judged)
	if res.Outcome != compare.OutcomeNoChange {
		t.Fatalf("outcome = %s, want no-change", res.Outcome)
	}
	if res.Step.Kind != step.Ask {
		res = w.until("question", 30*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	}
	if res.Decision.Verdict != gate.Approval || !hasReason(res.Decision.Reasons, gate.ReasonBudgetSpent) {
		t.Errorf("decision = %s %v, want approval for budget-spent", res.Decision.Verdict, res.Decision.Reasons)
	}
	open := w.pager.open()
	if len(open) != 1 {
		t.Fatalf("%d pages open, want one that asks", len(open))
	}
	for _, p := range open {
		if p.Now != escalate.ApprovalNeeded || !strings.Contains(p.Text, "setpoint approve t") {
			t.Errorf("page = %q %q, want the command that approves", p.Now, p.Text)
		}
	}

	// The question stands while nobody answers; nothing else is asked.
	asked := w.asked.Load()
	w.run(10 * time.Minute)
	if n := w.kinds(); n[ledger.KindTicket] != 1 || n[ledger.KindTicketEnd] != 0 || w.asked.Load() != asked {
		t.Fatalf("%d tickets, %d ended, %d questions to the proposer while one is open", n[ledger.KindTicket], n[ledger.KindTicketEnd], w.asked.Load()-asked)
	}
	var id string
	w.r.View(func(s *ledger.State) {
		ticket, _ := s.OpenTicket("checkout")
		id = ticket.ID
	})
	var refusal *approve.Refusal
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:mallory", Via: "cli", Approve: true}); !errors.As(err, &refusal) {
		t.Errorf("a stranger's answer gave %v, want a refusal", err)
	}
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true, Reason: "go"}); err != nil {
		t.Fatal(err)
	}
	res = w.until("approved effect", 5*time.Minute, applied)
	if res.Key == "" || len(w.actuator.Effects()) != 2 {
		t.Errorf("effects = %d, want 2", len(w.actuator.Effects()))
	}
	w.r.View(func(s *ledger.State) {
		total := 0.0
		for _, c := range s.Charges() {
			total += c.Cost
		}
		if total != 1 {
			t.Errorf("charged %v, want 1: approved actions cost nothing", total)
		}
	})
}

// An approval that the gate refuses at the end is void, with the reason, and
// people hear of it; nobody is asked again for the same thing at once.
func TestRefusedApprovalIsVoid(t *testing.T) {
	w := newWorld(t)
	w.set.Services[0].Remediation.Actions[0].Class = "approval"
	w.restart()
	w.healthy()
	w.breakNow(0.3)
	w.until("question", 15*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	w.rule = func([]byte) gate.Ruling {
		return gate.Ruling{Revision: "test-2", Deny: []gate.Rule{{Reason: "no-more", Package: "setpoint.gate"}}}
	}
	var id string
	w.r.View(func(s *ledger.State) { ticket, _ := s.OpenTicket("checkout"); id = ticket.ID })
	if _, err := w.r.Answer(t.Context(), approve.Answer{Ticket: id, By: "os:alice", Via: "cli", Approve: true}); err != nil {
		t.Fatal(err)
	}
	w.sweep()
	w.r.View(func(s *ledger.State) {
		if got := s.Tickets[id]; got.State != approve.Void || !strings.Contains(got.Reason, "policy:no-more") {
			t.Errorf("ticket is %s (%s), want void with policy's reason", got.State, got.Reason)
		}
	})
	if len(w.actuator.Journal()) != 0 {
		t.Error("a refused approval was sent")
	}
}

// An unanswered question expires, which is no denial, and reaches a person.
func TestUnansweredQuestionExpires(t *testing.T) {
	w := newWorld(t)
	w.set.Services[0].Remediation.Actions[0].Class = "approval"
	w.restart()
	w.healthy()
	w.breakNow(0.3)
	w.until("question", 15*time.Minute, func(r reconcile.Result) bool { return r.Step.Kind == step.Ask })
	w.run(16 * time.Minute)
	w.r.View(func(s *ledger.State) {
		for id, ticket := range s.Tickets {
			if ticket.State != approve.Expired {
				t.Errorf("%s is %s, want expired", id, ticket.State)
			}
		}
	})
	for _, p := range w.pager.open() {
		if p.Now != escalate.ApprovalExpired {
			t.Errorf("page says %s, want %s", p.Now, escalate.ApprovalExpired)
		}
	}
	if n := w.kinds()[ledger.KindTicket]; n != 1 {
		t.Errorf("%d tickets, want one: an expiry holds the action until the episode ends", n)
	}
}

func hasReason(rs []gate.Reason, code string) bool {
	for _, r := range rs {
		if r.Code == code {
			return true
		}
	}
	return false
}

// Unknown is never acted on, and reaches a person as blind.
func TestUnknownNeverActsAndPages(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	from := w.now
	w.unknown = func(at time.Time) measure.Reason {
		if at.Before(from) {
			return ""
		}
		return measure.NoData
	}
	for _, res := range w.run(15 * time.Minute) {
		if res.Step.Kind != step.Hold {
			t.Fatalf("step on unknown = %s", res.Step.Kind)
		}
	}
	if len(w.actuator.Journal()) != 0 || w.asked.Load() != 0 {
		t.Errorf("unknown led to %d requests and %d questions", len(w.actuator.Journal()), w.asked.Load())
	}
	open := w.pager.open()
	if len(open) != 1 {
		t.Fatalf("pages = %v, want one", open)
	}
	for _, p := range open {
		if p.Reason != escalate.Blind {
			t.Errorf("reason = %s, want blind", p.Reason)
		}
	}
	w.unknown = func(time.Time) measure.Reason { return "" }
	w.run(8 * time.Minute)
	if open := w.pager.open(); len(open) != 0 {
		t.Errorf("pages after measured recovery = %v, want none", open)
	}
}

// A lost reply is in doubt: asked for its mark after the horizon, never sent
// again.
func TestLostReplyIsNeverSentAgain(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.actuator.SetMode(executetest.ModeDropReply)
	w.breakNow(0.3)
	w.until("effect in doubt", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.InDoubt })
	w.restart()
	w.run(3 * time.Minute)
	w.r.View(func(s *ledger.State) {
		for key, e := range s.Effects {
			if e.Effect != execute.Landed {
				t.Errorf("%s is %s, want landed", key, e.Effect)
			}
		}
	})
	if n := len(w.actuator.Journal()); n != 1 {
		t.Errorf("%d requests reached the actuator, want 1", n)
	}
}

// An actuator that never answers for its mark ends with a person.
func TestUnansweredDoubtPages(t *testing.T) {
	w := newWorld(t)
	w.set.Services[0].Remediation.Actions[0].Target.StatusURL = "http://127.0.0.1:1/gone"
	w.set.Services[0].Remediation.Actions[0].Parameters[0].MaximumFactor = 0
	w.set.Services[0].Remediation.Actions[0].Reversal = spec.Transient // what restores must be seen
	w.cfg.Executors.Webhook.Allow = append(w.cfg.Executors.Webhook.Allow, "http://127.0.0.1:1/")
	w.restart()
	w.healthy()
	w.actuator.SetMode(executetest.ModeDropReply)
	w.breakNow(0.3)
	w.until("effect in doubt", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.InDoubt })
	w.run(15 * time.Minute)
	var page escalate.Page
	for id, p := range w.pager.open() {
		if strings.HasPrefix(id, "in-doubt/") {
			page = p
		}
	}
	if page.Reason != escalate.InDoubt {
		t.Fatalf("pages = %v, want one for the key in doubt\n%s", w.pager.open(), w.dump())
	}
	var decision string
	w.r.View(func(s *ledger.State) {
		for _, e := range s.Effects {
			decision = e.Claim.Decision
		}
	})
	if err := w.r.Settle(t.Context(), decision, execute.NotLanded, "os:alice", "looked at it"); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute)
	for id := range w.pager.open() {
		if strings.HasPrefix(id, "in-doubt/") {
			t.Error("the page is open although a person settled it")
		}
	}
}

// A freeze stops a send even when it comes between the claim and the send.
func TestFreezeStopsEverything(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.freezer.freeze(ledger.Freeze{ID: "f1", By: "os:alice", Reason: "incident"})
	w.breakNow(0.3)
	for _, res := range w.run(15 * time.Minute) {
		if res.Step.Kind != step.Hold && res.Step.Kind != step.Idle {
			t.Fatalf("step while frozen = %s", res.Step.Kind)
		}
	}
	if len(w.actuator.Journal()) != 0 || w.asked.Load() != 0 {
		t.Error("something was asked or sent while frozen")
	}
	if err := w.r.Thaw(t.Context(), "f1", "os:alice", "over"); err != nil {
		t.Fatal(err)
	}
	w.until("effect after the thaw", 5*time.Minute, applied)
	if files, _ := w.freezer.List(); len(files) != 0 {
		t.Errorf("the lifted freeze's file is still there: %v", files)
	}
}

// Facts that change between the gate and the send void the claim.
func TestSecondGateVoids(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	calls := 0
	grant := w.rule
	w.rule = func(input []byte) gate.Ruling {
		if calls++; calls == 2 {
			return gate.Ruling{Revision: "test", Deny: []gate.Rule{{Reason: "changed-mind", Package: "setpoint.gate"}}}
		}
		return grant(input)
	}
	res := w.until("void claim", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.Void })
	if len(w.actuator.Journal()) != 0 {
		t.Error("a void claim was sent")
	}
	w.r.View(func(s *ledger.State) {
		for _, c := range s.Charges() {
			if c.Cost != 0 {
				t.Errorf("a void claim costs %v", c.Cost)
			}
		}
	})
	again := w.until("effect in a later window", 15*time.Minute, applied)
	if again.Key == res.Key {
		t.Errorf("key %s was used twice", res.Key)
	}
}

// A policy fault means observe only, and a page.
func TestPolicyFaultPages(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Fault: "error: eval_conflict"} }
	w.breakNow(0.3)
	w.run(25 * time.Minute)
	if len(w.actuator.Journal()) != 0 {
		t.Error("a policy fault let something through")
	}
	if len(w.pager.open()) != 1 {
		t.Errorf("pages = %v, want one after escalateWithin", w.pager.open())
	}
}

// Proposals that are none, or no proposal at all, are final for the window and
// end with a person.
func TestUselessProposers(t *testing.T) {
	for name, p := range map[string]propose.Proposal{
		"None":      {Kind: propose.KindNone},
		"Malformed": {Kind: propose.KindMalformed, Fault: "malformed: prose"},
		"Stranger":  {Kind: propose.KindAction, Action: "drop-database", Parameters: propose.Parameters{}},
		"OutOfBounds": {Kind: propose.KindAction, Action: "scale",
			Parameters: propose.Parameters{"replicas": int64(9000)}},
		"Zero": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.healthy()
			w.propose = func(propose.Request) propose.Proposal { return p }
			w.breakNow(0.3)
			w.run(35 * time.Minute)
			if n := len(w.actuator.Journal()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
			if w.asked.Load() < 2 || w.asked.Load() > 4 {
				t.Errorf("asked %d times in 35 minutes, want once per window", w.asked.Load())
			}
			if len(w.pager.open()) != 1 {
				t.Errorf("pages = %v, want one\n%s", w.pager.open(), w.dump())
			}
		})
	}
}

// A proposer that panics is one failed pass, and the page comes all the same.
func TestPanicIsIsolated(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.propose = func(propose.Request) propose.Proposal { panic("poison") }
	w.breakNow(0.3)
	failed := 0
	for _, res := range w.run(30 * time.Minute) {
		if res.Err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("the panic is in no result")
	}
	if len(w.pager.open()) != 1 {
		t.Errorf("pages = %v, want one", w.pager.open())
	}
}

// Clocks that differ hold everything.
func TestClocksApartHold(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.skew = 6 * time.Second
	w.breakNow(0.3)
	w.run(15 * time.Minute)
	if len(w.actuator.Journal()) != 0 {
		t.Error("acted although the source's clock is 6 s away")
	}
}

// A pager that is down is tried until it is not.
func TestPagesAreDeliveredAtLeastOnce(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.propose = func(propose.Request) propose.Proposal { return propose.Proposal{Kind: propose.KindNone} }
	w.pager.fail = errors.New("503")
	w.breakNow(0.3)
	w.run(30 * time.Minute)
	w.restart()
	w.pager.mu.Lock()
	w.pager.fail = nil
	w.pager.mu.Unlock()
	w.run(10 * time.Minute)
	if len(w.pager.open()) != 1 {
		t.Errorf("pages = %v, want one", w.pager.open())
	}
}

// Restarting after every entry never makes a second effect for a key, and
// never refills a budget.
func TestRestartsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.breakNow(0.3)
	for range 60 {
		w.sweep()
		w.restart()
	}
	w.run(20 * time.Minute)
	seen := map[string]int{}
	for _, e := range w.actuator.Effects() {
		seen[e.Key]++
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%d effects for %s", n, key)
		}
	}
	if _, err := ledger.Fold(w.entries()); err != nil {
		t.Errorf("the chain does not fold: %v", err)
	}
}

package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestGoodHistory: nothing is named, and nothing went unchecked.
func TestGoodHistory(t *testing.T) {
	r := good(t).check()
	for _, v := range r.Violations {
		t.Errorf("%s", v)
	}
	for _, c := range r.Checked {
		if c.Instances == 0 {
			t.Errorf("%s %s was held against nothing", c.Invariant, c.Word)
		}
	}
	type figures struct{ Keys, Requests, Effects, Double, Late, Lost int }
	got := figures{r.Keys, r.Requests, r.Effects, r.DoubleEffects, r.AfterHorizon, r.LostAcknowledged}
	if diff := cmp.Diff(figures{9, 6, 5, 0, 0, 0}, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestEachInvariantIsNamed breaks one thing at a time.
func TestEachInvariantIsNamed(t *testing.T) {
	type names = []checker.Invariant
	cases := map[string]struct {
		reason string
		harm   func(h *history)
		want   names
	}{
		"second late effect": {"one effect per key", func(h *history) { h.journal = append(h.journal, *h.effectOf(k4.key())) }, names{checker.OneEffect}},
		"sent and done twice": {"a second send is one more fault than a second effect",
			func(h *history) { h.journal = append(h.journal, *h.record(k1.key())) }, names{checker.OneEffect, checker.NeverResent}},
		"never claimed": {"an effect needs a claim", func(h *history) { h.request(action{service: "checkout", at: 140, window: 140}) }, names{checker.ClaimedFirst}},
		"never started": {"an effect needs a start", func(h *history) { h.drop("void.last"); h.request(last) }, names{checker.ClaimedFirst}},
		"sent before it was started": {"claim and start come first",
			func(h *history) { h.record(k1.key()).Time = minute(1.05) }, names{checker.ClaimedFirst}},
		"other digest": {"the bytes claimed are the bytes sent", func(h *history) { h.record(k1.key()).Digest = "other" }, names{checker.ClaimedFirst}},
		"other parameters": {"the digest that a request names is not believed",
			func(h *history) { replaceIn(h.record(k1.key()), `"replicas":6`, `"replicas":60`) }, names{checker.ClaimedFirst}},
		"other action": {"nor is the action", func(h *history) { replaceIn(h.record(k1.key()), `"scale"`, `"flush"`) }, names{checker.ClaimedFirst}},
		"no body":      {"nothing was claimed that does not read", func(h *history) { h.record(k1.key()).Body = "{" }, names{checker.ClaimedFirst}},
		"refused send": {"a request without an effect counts too", func(h *history) {
			h.request(action{service: "checkout", at: 140, window: 140}, unapplied(execute.Failed))
		}, names{checker.ClaimedFirst}},

		"no decision":       {"a claim names one", func(h *history) { h.drop("decided.k1") }, names{checker.DecidedFirst}},
		"later decision":    {"which came before", func(h *history) { edit(h, "claim.k1", func(c *ledger.Claim) { c.Decision = "d999" }) }, names{checker.DecidedFirst}},
		"decided otherwise": {"about these bytes", func(h *history) { decides(h, "decided.k1", func(d *gate.Decision) { d.Digest = "other" }) }, names{checker.DecidedFirst}},
		"decided key":       {"under this key", func(h *history) { decides(h, "decided.k1", func(d *gate.Decision) { d.Key = k2.key() }) }, names{checker.DecidedFirst}},
		"decided to deny":   {"with this verdict", func(h *history) { decides(h, "decided.k1", func(d *gate.Decision) { d.Verdict = gate.Deny }) }, names{checker.DecidedFirst}},
		"decided to hold":   {"and nothing that holds", func(h *history) { decides(h, "decided.k1", func(d *gate.Decision) { d.Hold = true }) }, names{checker.DecidedFirst}},
		"both say deny": {"deny claims nothing", func(h *history) {
			decides(h, "decided.k1", func(d *gate.Decision) { d.Verdict = gate.Deny })
			edit(h, "claim.k1", func(c *ledger.Claim) { c.Verdict, c.Charge = gate.Deny, 0 })
		}, names{checker.DecidedFirst}},
		"asked for nothing": {"people are asked when a decision says so", func(h *history) { h.drop("decided.s1") }, names{checker.DecidedFirst}},
		"no input":          {"what was decided on is kept", func(h *history) { h.noBlobs = true }, names{checker.DecidedFirst}},
		"no ticket":         {"an approval has a ticket", func(h *history) { h.drop("ticket.k2") }, names{checker.DecidedFirst}},
		"half an approval":  {"a quorum is whole", func(h *history) { h.drop("bob.k2") }, names{checker.DecidedFirst}},
		"one voice twice": {"a quorum counts people", func(h *history) {
			edit(h, "bob.k2", func(a *approve.Answer) { a.By = "os:alice" })
		}, names{checker.DecidedFirst}},
		"not one of those asked": {"a stranger's yes counts nothing", func(h *history) {
			edit(h, "bob.k2", func(a *approve.Answer) { a.Satisfies = nil })
		}, names{checker.DecidedFirst}},

		"after the expiry": {"a permit ends", func(h *history) { h.record(k1.key()).Time = minute(1.5).Add(1001 * time.Millisecond) }, names{checker.BeforeExpiry}},
		"accepted after the expiry": {"a late effect is measured at its acceptance",
			func(h *history) { h.record(k4.key()).Time = minute(62) }, names{checker.BeforeExpiry}},

		"not judged yet": {"until the outcome the service is locked", func(h *history) { h.drop("outcome.k1"); h.o.Budget.Capacity = 9 }, names{checker.OneInFlight}},
		"same target": {"two services may share a target", func(h *history) {
			h.drop("outcome.k4")
			h.drop("claim.k5")
			h.drop("start.k5")
			h.drop("receipt.k5")
			h.drop("outcome.k5")
			h.unsend(k5.key())
			for _, name := range []string{"claim.s4", "claim.s3", "claim.s2"} {
				edit(h, name, func(c *ledger.Claim) { c.Target = k4.spec().Canonical() })
			}
		}, names{checker.OneInFlight}},
		"unknown stays locked": {"only a person ends it", func(h *history) { h.drop("found.k2"); h.drop("outcome.k2"); h.undoes("") }, names{checker.OneInFlight}},

		"spacing":     {"two starts are apart", func(h *history) { h.o.MinSpacing = 14 * time.Minute }, names{checker.MinSpacing}},
		"frozen":      {"a freeze stops what was not started", func(h *history) { h.put("after.k1", ledger.KindFreeze, "", frozenAt(1.1)) }, names{checker.NotFrozen}},
		"still":       {"until it is thawed", func(h *history) { h.drop("thaw") }, names{checker.NotFrozen}},
		"until":       {"or runs out", func(h *history) { edit(h, "freeze.until", func(f *ledger.Freeze) { f.Until = minute(62) }) }, names{checker.NotFrozen}},
		"service cap": {"starts are counted by the hour", func(h *history) { h.o.EffectsPerServicePerHour = 1 }, names{checker.Caps}},
		"global cap":  {"of all services", func(h *history) { h.o.EffectsPerHour = 3 }, names{checker.Caps}},

		"started twice": {"there is one start", func(h *history) { h.put("sent.k1", ledger.KindStarted, "checkout", ledger.Started{Key: k1.key()}) }, names{checker.NeverResent}},
		"resent":        {"in doubt is not sent again", func(h *history) { h.request(k2, unapplied(execute.Failed)) }, names{checker.NeverResent}},
		"settled twice": {"in doubt is left once", func(h *history) { h.put("checkpoint", ledger.KindSettled, "search", settled(s4)) }, names{checker.NeverResent}},
		"found by none": {"only a person ends unknown", func(h *history) { edit(h, "found.k2", func(s *ledger.Settled) { s.By = "observation" }); h.undoes("") }, names{checker.OneInFlight, checker.NeverResent, checker.StateMachine}},
		"found no-op": {"and says landed or not", func(h *history) {
			edit(h, "found.k2", func(s *ledger.Settled) { s.Effect = execute.NoOp })
			h.drop("outcome.k2")
			h.undoes("")
		}, names{checker.OneInFlight, checker.NeverResent}},
		"claims unknown": {"unknown is no breach", func(h *history) { edit(h, "claim.k1", func(c *ledger.Claim) { c.State = compare.Unknown }) }, names{checker.KnownBreach}},
		"no state":       {"nor is no state", func(h *history) { edit(h, "claim.k1", func(c *ledger.Claim) { c.State = "" }) }, names{checker.KnownBreach}},
		"decides unknown": {"nor when it was decided", func(h *history) {
			edit(h, "decided.k1", func(d *ledger.Decided) { d.State = compare.Unknown })
		}, names{checker.KnownBreach}},
		"went unknown": {"nor since", func(h *history) {
			h.put("before.k5", ledger.KindState, "checkout", ledger.StateChange{To: compare.Unknown})
		}, names{checker.KnownBreach}},
		"went met": {"a met SLO is not acted on", func(h *history) {
			h.put("before.k5", ledger.KindState, "checkout", ledger.StateChange{To: compare.Met})
		}, names{checker.KnownBreach}},
		"storm":           {"nothing is done in a storm", func(h *history) { h.put("before.k1", ledger.KindStorm, "", ledger.Storm{Phase: ledger.StormOn}) }, names{checker.NotInStorm}},
		"easing":          {"nor while it eases", func(h *history) { h.put("before.k1", ledger.KindStorm, "", ledger.Storm{Phase: ledger.StormEasing}) }, names{checker.NotInStorm}},
		"undo of nothing": {"an undo takes back what was done", func(h *history) { h.undoes("checkout:1-600") }, names{checker.UndoOnce}},
		"undo of help": {"and what was judged worsened", func(h *history) {
			edit(h, "outcome.k2", func(o *ledger.Outcome) { o.Judgement.Outcome = compare.OutcomeImproved })
		}, names{checker.UndoOnce}},
		"undo elsewhere": {"on the same target", func(h *history) {
			h.undoes(k2.key())
			edit(h, "claim.k2", func(c *ledger.Claim) { c.Action.Reversal = spec.Transient })
		}, names{checker.UndoOnce}},
		"unknown, undo":  {"an undo needs to know too", func(h *history) { edit(h, "claim.k3", func(c *ledger.Claim) { c.State = compare.Unknown }) }, names{checker.KnownBreach}},
		"never measured": {"nothing is known of it", func(h *history) { h.drop("search.breached") }, names{checker.KnownBreach}},

		"nothing left":     {"an empty balance affords nothing", func(h *history) { h.o.Budgets = map[string]checker.Budget{"search/scale": {Period: time.Hour}} }, names{checker.BalanceLeft}},
		"nothing anywhere": {"nor does an empty global one", func(h *history) { h.o.Global.Capacity = 0 }, names{checker.BalanceLeft}},
		"too little left":  {"the dearest outcome must fit", func(h *history) { h.o.Budget.Capacity = 1.5 }, names{checker.ChargedAtClaim}},
		"refilled": {"harm stays charged", func(h *history) {
			edit(h, "outcome.k1", func(o *ledger.Outcome) { o.Judgement.Outcome, o.Cost = compare.OutcomeWorsened, 2 })
		}, names{checker.ChargedAtClaim}},
		"charge forgotten": {"the claim carries it", func(h *history) { edit(h, "claim.k5", func(c *ledger.Claim) { c.Charge = 0 }) }, names{checker.ChargedAtClaim}},
		"refund":           {"what did not help is paid for", func(h *history) { edit(h, "outcome.k1", func(o *ledger.Outcome) { o.Cost = 0 }) }, names{checker.RefundMeasured}},
		"free harm": {"what got worse is paid for, also where it was recovering", func(h *history) {
			edit(h, "outcome.k1", func(o *ledger.Outcome) {
				o.Judgement.Outcome, o.Judgement.Recovering, o.Cost = compare.OutcomeWorsened, true, 0
			})
			h.o.Budget.Capacity = 5
		}, names{checker.RefundMeasured}},
		"undo without cost": {"an undo that harms costs too", func(h *history) {
			edit(h, "outcome.k3", func(o *ledger.Outcome) { o.Judgement.Outcome = compare.OutcomeWorsened })
			h.o.Budget.Capacity = 5
		}, names{checker.RefundMeasured}},

		"approved bytes": {"people allow bytes", func(h *history) { edit(h, "ticket.k2", func(t *approve.Ticket) { t.Digest = "other" }) }, names{checker.TicketOnce}},
		"approved key":   {"under one key", func(h *history) { edit(h, "ticket.k2", func(t *approve.Ticket) { t.Key = k1.key() }) }, names{checker.TicketOnce}},
		"late answer":    {"an answer after the end is none", func(h *history) { edit(h, "bob.k2", func(a *approve.Answer) { a.At = minute(26) }) }, names{checker.TicketOnce}},
		"used twice": {"for one claim", func(h *history) {
			ticket := h.find("claim.k2").draft.Body.(ledger.Claim).Ticket
			edit(h, "claim.k5", func(c *ledger.Claim) { c.Ticket = ticket })
		}, names{checker.TicketOnce}},
		"ended": {"an ended ticket allows nothing", func(h *history) { h.put("before.k2", ledger.KindTicketEnd, "checkout", ended(h)) }, names{checker.TicketOnce}},
		"ended, and not started": {"even if nothing came of it", func(h *history) {
			h.put("before.k2", ledger.KindTicketEnd, "checkout", ended(h))
			h.put("start.k2", ledger.KindVoid, "checkout", voided(k2))
			h.undoes("")
			for _, name := range []string{"receipt.k2", "unknown.k2", "found.k2", "outcome.k2"} {
				h.drop(name)
			}
			h.unsend(k2.key())
		}, names{checker.TicketOnce}},
		"ended since": {"nor one that ended before the start", func(h *history) { h.put("after.k2", ledger.KindTicketEnd, "checkout", ended(h)) }, names{checker.TicketOnce}},
		"waited too long": {"an approval does not wait for ever", func(h *history) {
			edit(h, "ticket.k2", func(t *approve.Ticket) { t.Expires = minute(13.1) })
			h.o.MinSpacing, h.o.Sweep = 0, 10*time.Second
		}, names{checker.TicketOnce}},
		"denied in time": {"a deny counts until the start", func(h *history) { h.put("after.k2", ledger.KindAnswer, "checkout", deny(h)) }, names{checker.DenyStops}},

		"silence":     {"undefined is no grant", func(h *history) { rules(h, "decided.k1", func(r *gate.Ruling) { r.Auto = nil }) }, names{checker.Granted}},
		"fault":       {"a fault grants nothing", func(h *history) { rules(h, "decided.k1", func(r *gate.Ruling) { r.Fault = "timeout" }) }, names{checker.Granted}},
		"denied":      {"the strictest wins", func(h *history) { rules(h, "decided.k1", func(r *gate.Ruling) { r.Deny = r.Auto }) }, names{checker.Granted}},
		"wants a yes": {"a person is not skipped", func(h *history) { rules(h, "decided.k1", func(r *gate.Ruling) { r.Approval = r.Auto }) }, names{checker.Granted}},

		"lost":         {"what was acknowledged stays", func(h *history) { h.o.Acknowledged[7].Hash = "other" }, names{checker.NothingLost}},
		"lost the end": {"to the last", func(h *history) { h.steps = h.steps[:len(h.steps)-1] }, names{checker.NothingLost}},
		"back in time": {"time does not run back", func(h *history) { h.find("asked.k1").at = minute(0.2) }, names{checker.ChainWhole}},

		"earlier window": {"windows rise", func(h *history) {
			h.drop("adopted")
			h.whole(action{name: "x", service: "search", at: 150, window: 110, verdict: gate.Auto})
		}, names{checker.WindowsRise}},
		"claimed again": {"a window is spent for ever", func(h *history) {
			h.whole(action{name: "x", service: "checkout", at: 150, window: 90, length: 15 * time.Minute, verdict: gate.Auto})
		}, names{checker.WindowsRise}},
		"adopted": {"what began before an adoption is spent", func(h *history) {
			h.put("before.k5", ledger.KindAdopted, "", ledger.Adopted{By: "os:alice", Reason: "r"})
		}, names{checker.WindowsRise}},
		"same key again": {"a key is claimed once", func(h *history) {
			h.put("ceiling", ledger.KindClaim, "search", h.find("claim.s2").draft.Body)
		}, names{checker.WindowsRise}},

		"void after start":  {"what was sent is not void", func(h *history) { h.put("sending.k1", ledger.KindVoid, "checkout", voided(k1)) }, names{checker.StateMachine}},
		"started when void": {"what is void is not started", func(h *history) { h.put("checkpoint", ledger.KindStarted, "search", ledger.Started{Key: s2.key()}) }, names{checker.StateMachine}},
		"two receipts":      {"one answer is final", func(h *history) { h.put("sent.k1", ledger.KindReceipt, "checkout", h.find("receipt.k1").draft.Body) }, names{checker.StateMachine}},
		"two outcomes":      {"so is one outcome", func(h *history) { h.put("page", ledger.KindOutcome, "checkout", h.find("outcome.k5").draft.Body) }, names{checker.StateMachine}},
		"nothing to judge":  {"what failed is not judged", func(h *history) { h.put("page", ledger.KindOutcome, "search", judgedOf(s3)) }, names{checker.StateMachine}},
		"outcome of nothing": {"an outcome needs a claim", func(h *history) {
			h.put("page", ledger.KindOutcome, "search", judgedOf(action{service: "search", window: 200}))
		}, names{checker.StateMachine}},
		"start of nothing": {"a start needs a claim", func(h *history) {
			h.put("page", ledger.KindStarted, "search", ledger.Started{Key: action{service: "search", window: 200}.key()})
		}, names{checker.StateMachine}},

		"asked twice": {"a window is asked for once", func(h *history) { h.put("before.k1", ledger.KindAsked, "checkout", h.find("asked.k1").draft.Body) }, names{checker.OncePerWindow}},
		"two proposals": {"and has one proposal", func(h *history) {
			h.put("before.k1", ledger.KindProposal, "checkout", h.find("proposed.k1").draft.Body)
		}, names{checker.OncePerWindow}},
		"two undos": {"and one undo", func(h *history) { h.put("before.k3", ledger.KindProposal, "checkout", h.find("undo.k3").draft.Body) }, names{checker.OncePerWindow}},

		"never arrived":      {"applied was received", func(h *history) { h.unsend(k1.key()) }, names{checker.JournalAgrees}},
		"answered otherwise": {"and said to be done", func(h *history) { unapplied(execute.NoOp)(h.record(k1.key())) }, names{checker.JournalAgrees}},
		"failed and done":    {"failed did nothing", func(h *history) { h.request(s3) }, names{checker.JournalAgrees}},
		"landed after all":   {"not-landed had no effect", func(h *history) { r := h.record(s4.key()); r.Result, r.Applied = execute.Applied, true }, names{checker.JournalAgrees}},
		"void but sent":      {"void was not sent", func(h *history) { h.request(last) }, names{checker.VoidButSent}},
		"void but received":  {"with or without an effect", func(h *history) { h.request(last, unapplied(execute.Failed)) }, names{checker.VoidButSent}},
	}
	named := map[checker.Invariant]bool{}
	for name, tc := range cases {
		if len(tc.want) == 1 {
			named[tc.want[0]] = true
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			h := good(t)
			acks := h.o.Acknowledged
			tc.harm(h)
			if !strings.HasPrefix(name, "lost") {
				acks = nil // every change of an entry is a loss of what was acknowledged
			}
			h.o.Acknowledged = acks
			r := h.check()
			if diff := cmp.Diff(tc.want, r.Named()); diff != "" {
				t.Errorf("%s (-want +got):\n%s%v", tc.reason, diff, r.Violations)
			}
		})
	}
	for _, i := range checker.Invariants() {
		if !named[i] {
			t.Errorf("no case breaks %s %s alone", i, i.Word())
		}
	}
}

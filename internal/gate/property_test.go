package gate_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// tightenings each make one fact stricter than in granted, and nothing looser.
var tightenings = map[string]func(c *gate.Case){
	"freeze":       func(c *gate.Case) { c.Facts.Freezes = []gate.Hold{{ID: "f"}} },
	"key":          func(c *gate.Case) { c.Facts.KeyClaimed = true },
	"inFlight":     func(c *gate.Case) { c.Facts.InFlight = "d1" },
	"target":       func(c *gate.Case) { c.Facts.InFlightTarget = "d2" },
	"spacing":      func(c *gate.Case) { c.Facts.LastSent = now },
	"capService":   func(c *gate.Case) { c.Facts.SentService = 99 },
	"capGlobal":    func(c *gate.Case) { c.Facts.SentGlobal = 99 },
	"cooldown":     func(c *gate.Case) { c.Facts.ActionSent = now },
	"storm":        func(c *gate.Case) { c.Facts.Storm = "31 of 40" },
	"unknown":      func(c *gate.Case) { c.Facts.Assessment.State = compare.Unknown },
	"breachFor":    func(c *gate.Case) { c.Service.Remediation.BreachFor = time.Hour },
	"specProblem":  func(c *gate.Case) { c.Facts.SpecProblem = "x" },
	"freshReads":   func(c *gate.Case) { c.Facts.FreshReads = 0 },
	"silence":      func(c *gate.Case) { c.Facts.Silences = []gate.Hold{{ID: "s"}} },
	"maintenance":  func(c *gate.Case) { c.Facts.Maintenances = []gate.Hold{{ID: "m"}} },
	"dependency":   func(c *gate.Case) { c.Facts.Dependencies = nil },
	"clocks":       func(c *gate.Case) { c.Facts.ClocksApart = "x" },
	"policy":       func(c *gate.Case) { c.Facts.PolicyFault = "x" },
	"tickets":      func(c *gate.Case) { c.Facts.OpenTickets = 99 },
	"balance":      func(c *gate.Case) { c.Facts.Balance.Remaining = 1 },
	"global":       func(c *gate.Case) { c.Facts.Balance.GlobalRemaining = 0 },
	"class":        func(c *gate.Case) { action(c).Class = spec.ClassApproval },
	"irreversible": func(c *gate.Case) { action(c).Reversal = spec.Irreversible },
	"warming":      func(c *gate.Case) { c.Facts.Assessment.Warming = true },
	"documents":    func(c *gate.Case) { c.Facts.DocumentsChangedAt = now },
	"mode":         func(c *gate.Case) { c.Service.Remediation.Mode = spec.Suggest },
	"maxMode":      func(c *gate.Case) { c.Limits.MaxMode = spec.Approval },
	"ceiling":      func(c *gate.Case) { c.Facts.Ceiling = gate.Escalate },
	"exception": func(c *gate.Case) {
		c.Facts.Exceptions = []spec.Exception{{Service: "checkout", Effect: spec.Approval}}
	},
	"suspended":  func(c *gate.Case) { c.Facts.Suspended = "x" },
	"person":     func(c *gate.Case) { c.Facts.PersonHold = "x" },
	"unanswered": func(c *gate.Case) { c.Facts.Unanswered = "t1 (scale)" },
	"live":       func(c *gate.Case) { c.Facts.Item.LiveKnown = false },
	"ownership":  func(c *gate.Case) { c.Facts.Ownership = "hpa" },
	"expired":    func(c *gate.Case) { c.Facts.PermitExpires = now },
	"approvers":  func(c *gate.Case) { c.Service.Remediation.Approvers = nil },
	"zeroLimits": func(c *gate.Case) { c.Limits = gate.Limits{} },
}

// never are the tightenings beside which nothing may run without a person (P1).
var never = []string{"balance", "global", "inFlight", "target", "maintenance", "unknown", "key", "freeze", "storm", "policy"}

func drawCase(t *rapid.T) (gate.Case, []string) {
	c := granted()
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(tightenings))), 0, 3, rapid.ID[string]).Draw(t, "tightenings")
	for _, n := range names {
		tightenings[n](&c)
	}
	if rapid.Bool().Draw(t, "ticket") {
		fresh := granted()
		d := gate.Decide(fresh, allows())
		c.Facts.ApprovedTicket, c.Facts.ApprovedDigest = "t1", d.Digest
		c.Facts.ApprovedNeeds = []gate.Need{{Approvers: []string{"@payments-oncall"}, Quorum: 3}}
	}
	return c, names
}

func drawRules(t *rapid.T, label string) []gate.Rule {
	var out []gate.Rule
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, label) {
		out = append(out, gate.Rule{Reason: fmt.Sprintf("%s-%d", label, i)})
	}
	return out
}

func drawRuling(t *rapid.T) gate.Ruling {
	r := gate.Ruling{Auto: drawRules(t, "auto"), Approval: drawRules(t, "approval"), Escalate: drawRules(t, "escalate"), Deny: drawRules(t, "deny")}
	r.Fault = rapid.SampledFrom([]string{"", "", "", "timeout: 1s"}).Draw(t, "fault")
	return r
}

// reach is how far a decision lets a step go: nothing, a question, an effect.
func reach(d gate.Decision) int {
	if _, ok := d.Permit(); ok {
		return 2
	}
	if d.Verdict == gate.Approval {
		return 1
	}
	return 0
}

// P1, INV-27 and the rule that a permit comes of a grant only.
func TestPropertyNeverAuto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, names := drawCase(t)
		r := drawRuling(t)
		d := gate.Decide(c, r)
		if d.Verdict < gate.Deny || d.Verdict > gate.Auto || len(d.Reasons) == 0 {
			t.Fatalf("no verdict with a reason: %+v", d)
		}
		granting := r.Fault == "" && len(r.Deny)+len(r.Escalate) == 0 && len(r.Auto)+len(r.Approval) > 0
		if d.Verdict >= gate.Approval && !granting {
			t.Fatalf("%s although the ruling grants nothing: %+v", d.Verdict, r)
		}
		if d.Verdict == gate.Auto && (len(r.Approval) > 0 || len(r.Auto) == 0) {
			t.Fatalf("auto although the ruling asks a person: %+v", r)
		}
		for _, n := range names {
			if d.Verdict == gate.Auto && slices.Contains(never, n) {
				t.Fatalf("auto beside %s", n)
			}
		}
		_, ok := d.Permit()
		if want := !d.Hold && (d.Verdict == gate.Auto || d.Verdict == gate.Approval && c.Facts.ApprovedTicket != ""); ok != want {
			t.Fatalf("permit %v for %s, hold %v, ticket %q", ok, d.Verdict, d.Hold, c.Facts.ApprovedTicket)
		}
		if d.Hold && d.Verdict != gate.Deny {
			t.Fatalf("held and %s", d.Verdict)
		}
		for i := 1; i < len(d.Reasons); i++ {
			if d.Reasons[i].Code == "" || d.Reasons[i].Text == "" {
				t.Fatalf("a reason without words: %+v", d.Reasons)
			}
		}
	})
}

// P2: one more tightening, or one more rule that refuses or asks, never lets a
// step go further (INV-29).
func TestPropertyMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		r := drawRuling(t)
		before := gate.Decide(c, r)
		what := rapid.SampledFrom(append(slices.Sorted(maps.Keys(tightenings)), "+deny", "+escalate", "+approval", "+fault")).Draw(t, "more")
		extra := gate.Rule{Reason: "extra"}
		switch what {
		case "+deny":
			r.Deny = append(slices.Clone(r.Deny), extra)
		case "+escalate":
			r.Escalate = append(slices.Clone(r.Escalate), extra)
		case "+approval":
			if len(r.Auto)+len(r.Approval) == 0 {
				return // approval grants: from nothing it may lead to a question
			}
			r.Approval = append(slices.Clone(r.Approval), extra)
		case "+fault":
			r.Fault = "error: x"
		default:
			tightenings[what](&c)
		}
		after := gate.Decide(c, r)
		if reach(after) > reach(before) || (before.Verdict != gate.Auto && after.Verdict == gate.Auto) {
			t.Fatalf("%s loosened %s %+v to %s %+v", what, before.Verdict, before.Reasons, after.Verdict, after.Reasons)
		}
	})
}

// INV-30: whatever a model says, what can be sent is the catalogue's action
// with parameters in bounds, for this service and key.
func TestPropertyHostileProposal(t *testing.T) {
	value := rapid.OneOf(
		rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(), rapid.Bool().AsAny(),
		rapid.Int64Range(0, 30).AsAny(), rapid.Just[any](nil), rapid.Just[any]([]any{"x"}), rapid.Just[any](map[string]any{"a": 1}))
	rapid.Check(t, func(t *rapid.T) {
		c := granted()
		c.Proposal = propose.Proposal{
			Kind:       rapid.SampledFrom([]propose.Kind{propose.KindAction, propose.KindAction, propose.KindNone, propose.KindEscalate, "auto", ""}).Draw(t, "kind"),
			Action:     rapid.OneOf(rapid.Just("scale"), rapid.String()).Draw(t, "action"),
			Parameters: rapid.MapOf(rapid.OneOf(rapid.Just("replicas"), rapid.String()), value).Draw(t, "parameters"),
			Rationale:  rapid.String().Draw(t, "rationale"), Undo: rapid.Bool().Draw(t, "undo"),
			Proposer: propose.Proposer{Kind: "openai", Model: rapid.String().Draw(t, "model")},
		}
		p, ok := gate.Decide(c, allows()).Permit()
		if !ok {
			return
		}
		n, isInt := p.Parameters()["replicas"].(int64)
		if f, isFloat := p.Parameters()["replicas"].(float64); isFloat {
			n, isInt = int64(f), float64(int64(f)) == f
		}
		if p.Service() != "checkout" || p.Key() != c.Key || p.Action().Name != "scale" || p.Undo() || len(p.Parameters()) != 1 || !isInt || n < 3 || n > 8 {
			t.Fatalf("a permit outside the catalogue: %+v", p)
		}
	})
}

func TestPropertyStableReasons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawCase(t)
		r := drawRuling(t)
		a := plain(gate.Decide(c, r))
		slices.Reverse(r.Deny)
		slices.Reverse(r.Auto)
		d := gate.Decide(c, r)
		slices.Reverse(d.Ruling.Deny)
		slices.Reverse(d.Ruling.Auto)
		if b := plain(d); a != b {
			t.Fatalf("the order of rules changes the decision:\n%s\n%s", a, b)
		}
	})
}

func TestBalanceIsNeverAffordedByNonsense(t *testing.T) {
	for name, b := range map[string]budget.Balance{"Zero": {}, "Negative": {Remaining: -5, GlobalRemaining: 10}, "NaN": {Remaining: math.NaN(), GlobalRemaining: math.NaN()}} {
		c := granted()
		c.Facts.Balance = b
		if d := gate.Decide(c, allows()); d.Verdict != gate.Approval {
			t.Errorf("%s balance gives %s", name, d.Verdict)
		}
	}
}

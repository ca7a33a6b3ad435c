package demo

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// claim is one thing that the demo says, with how it was measured.
type claim struct {
	service, text string
	// missing says what was not measured; "" when the claim holds.
	missing func(evidence) string
}

// Verdict is one claim after the evidence was read.
type verdict struct {
	service, text, why string
}

func (v verdict) holds() bool { return v.why == "" }

// claims are everything that the demo says, in the order in which it is shown.
var claims = []claim{
	{shop.Checkout, "one rollback, by verdict auto, and one effect in the actuator's journal", autoOnce},
	{shop.Checkout, "measured before and after: it recovered, and the episode is over", recoveredByFirst},
	{shop.Fulfilment, "the first recycle-workers ran by verdict auto, once, and changed nothing", firstDidNotHelp},
	{shop.Fulfilment, "the autonomy budget paid 1 for it, and 1 is less than the dearest outcome", budgetPaid},
	{shop.Fulfilment, "for the second, policy (second-try) and balance (budget-spent) both asked for a person", bothAsk},
	{shop.Fulfilment, "you approved it; it ran once, cost nothing, and measurement says it recovered", approvedOnce},
	{shop.Catalog, "unknown (no-data): nothing was claimed and nothing was sent", nothingDone},
	{shop.Catalog, "the on-call's pager holds a page that says blind", pagedBlind},
	{"", "what reached the actuator is what the gate decided, by digest, and nothing else reached it", sameBytes},
	{"", "Prometheus's engine, asked in other words, gives the recorded before and after", probesAgree},
	{"", "every proposal came from the rules file behind the OpenAI-compatible endpoint", sameProposer},
	{"", "no effect was doubled", noDoubles},
	{"", "nothing was done on unknown", noUnknown},
}

// weigh holds every claim against the evidence.
func weigh(e evidence) []verdict {
	out := make([]verdict, 0, len(claims))
	for _, c := range claims {
		out = append(out, verdict{service: c.service, text: c.text, why: c.missing(e)})
	}
	return out
}

// nth is the i-th effect of a service's episode, with what is wrong about it:
// the wrong action, another verdict, or not exactly one change in the journal.
func nth(e evidence, service string, i int, want string, by gate.Verdict) (*ledger.Effect, string) {
	all := e.effects(service)
	if len(all) <= i {
		return nil, fmt.Sprintf("%d actions in the episode, want %d", len(all), i+1)
	}
	ef := all[i]
	c := ef.Claim
	switch n := len(e.applied(c.Key)); {
	case c.Action.Name != want:
		return ef, fmt.Sprintf("the action was %s", c.Action.Name)
	case c.Verdict != by:
		return ef, fmt.Sprintf("%s got verdict %s", c.Action.Name, c.Verdict)
	case n != 1:
		return ef, fmt.Sprintf("%d effects of %s in the journal", n, c.Key)
	}
	return ef, ""
}

// judged says what is missing where an effect should have an outcome.
func judged(ef *ledger.Effect, want compare.Outcome) string {
	if ef.Judgement == nil {
		return fmt.Sprintf("%s was not judged: effect %s", ef.Claim.Key, ef.Effect)
	}
	if ef.Outcome != want {
		return fmt.Sprintf("%s was judged %s: %s before, %s after", ef.Claim.Key, ef.Outcome,
			percent(ef.Judgement.Before), percent(ef.Judgement.After))
	}
	return ""
}

func autoOnce(e evidence) string {
	_, why := nth(e, shop.Checkout, 0, "rollback", gate.Auto)
	if n := len(e.effects(shop.Checkout)); why == "" && n != 1 {
		return fmt.Sprintf("%d actions", n)
	}
	return why
}

func recoveredByFirst(e evidence) string {
	ef, why := nth(e, shop.Checkout, 0, "rollback", gate.Auto)
	if why == "" {
		why = judged(ef, compare.OutcomeRecovered)
	}
	return first(why, over(e, shop.Checkout))
}

func over(e evidence, service string) string {
	if ep := e.episodes[service]; ep.recovered.IsZero() {
		return "the episode is not over"
	}
	return ""
}

func firstDidNotHelp(e evidence) string {
	ef, why := nth(e, shop.Fulfilment, 0, "recycle-workers", gate.Auto)
	if why == "" {
		why = judged(ef, compare.OutcomeNoChange)
	}
	return why
}

func budgetPaid(e evidence) string {
	ef, why := nth(e, shop.Fulfilment, 0, "recycle-workers", gate.Auto)
	if why != "" {
		return why
	}
	if got, dearest := ef.Charge(), ef.Claim.Costs.Dearest(); got != 1 || dearest <= 1 {
		return fmt.Sprintf("it was charged %g, the dearest outcome costs %g", got, dearest)
	}
	return ""
}

// asked is the ticket of a service's episode; nil without.
func asked(e evidence, service string) (id string, reasons []gate.Reason) {
	sv, _ := e.chain.Service(service)
	for _, id := range sv.Tickets {
		if t := e.chain.Tickets[id]; t != nil && t.Episode == e.episodes[service].id {
			return id, t.Reasons
		}
	}
	return "", nil
}

// The reasons for which the second attempt needs a person.
const (
	byPolicy  = gate.PolicyPrefix + "second-try"
	byBalance = gate.ReasonBudgetSpent
)

func bothAsk(e evidence) string {
	id, reasons := asked(e, shop.Fulfilment)
	if id == "" {
		return "nobody was asked"
	}
	for _, code := range []string{byPolicy, byBalance} {
		if !hasReason(reasons, code) {
			return fmt.Sprintf("%s does not name %s", id, code)
		}
	}
	return ""
}

func approvedOnce(e evidence) string {
	ef, why := nth(e, shop.Fulfilment, 1, "recycle-workers", gate.Approval)
	if why != "" {
		if id, _ := asked(e, shop.Fulfilment); id != "" && ef == nil {
			t := e.chain.Tickets[id]
			return fmt.Sprintf("%s is %s, and nothing was sent for it", id, t.State)
		}
		return why
	}
	if by := e.approver(ef); by != e.you {
		return fmt.Sprintf("it was approved by %q, not by %s", by, e.you)
	}
	if got := ef.Charge(); got != 0 {
		return fmt.Sprintf("it was charged %g", got)
	}
	return first(judged(ef, compare.OutcomeRecovered), over(e, shop.Fulfilment))
}

func nothingDone(e evidence) string {
	ep, ok := e.episodes[shop.Catalog]
	switch {
	case !ok:
		return "it never was unknown"
	case ep.state != compare.Unknown || ep.reason != "no-data":
		return fmt.Sprintf("it was %s (%s)", ep.state, ep.reason)
	case len(e.effects(shop.Catalog)) > 0 || len(e.sent(shop.Catalog)) > 0:
		return fmt.Sprintf("%d claims, %d requests", len(e.effects(shop.Catalog)), len(e.sent(shop.Catalog)))
	}
	return ""
}

func pagedBlind(e evidence) string {
	p, ok := e.page(shop.Catalog, escalate.Blind)
	switch {
	case !ok:
		return "the pager holds none"
	case !p.EndedAt.IsZero():
		return "it was ended at " + p.EndedAt.UTC().Format("15:04:05")
	}
	return ""
}

// sameBytes reads the journal, not the agent: each request's digest is that of
// a claim, and the digest of the claim is that of its decision.
func sameBytes(e evidence) string {
	if len(e.journal) == 0 {
		return "the journal is empty"
	}
	for _, r := range e.journal {
		ef := e.chain.Effects[gate.Key(r.Key)]
		if ef == nil {
			return fmt.Sprintf("a request under %q, which nobody claimed", r.Key)
		}
		d := e.chain.Decisions[ef.Claim.Decision]
		switch {
		case !r.Signed:
			return r.Key + " is not signed"
		case r.Digest == "" || d == nil || r.Digest != d.Decision.Digest || r.Digest != ef.Claim.Digest:
			return r.Key + " has another digest than its decision"
		case r.Service != ef.Service || r.Action != ef.Claim.Action.Name:
			return fmt.Sprintf("%s did %s of %s", r.Key, r.Action, r.Service)
		}
	}
	return ""
}

func probesAgree(e evidence) string {
	if len(e.probes) == 0 {
		return "nothing was judged"
	}
	var off []string
	for _, p := range e.probes {
		switch {
		case p.agrees():
		case !p.ok:
			off = append(off, fmt.Sprintf("%s of %s: no answer", p.what, p.key))
		default:
			off = append(off, fmt.Sprintf("%s of %s: recorded %s, the engine says %s", p.what, p.key, percent(p.recorded), percent(p.answer)))
		}
	}
	return strings.Join(off, "; ")
}

func sameProposer(e evidence) string {
	if len(e.chain.DecisionOrder) == 0 {
		return "nothing was proposed"
	}
	for _, id := range e.chain.DecisionOrder {
		d := e.chain.Decisions[id]
		if who := d.Proposal.Proposer; who.Kind != "openai" || who.Model != model.Name {
			return fmt.Sprintf("%s came from %s %s", id, who.Kind, who.Model)
		}
		if d.Proposal.Kind == propose.KindMalformed {
			return fmt.Sprintf("%s was malformed: %s", id, d.Proposal.Fault)
		}
	}
	return ""
}

func noDoubles(e evidence) string {
	if ds := e.doubles(); len(ds) > 0 {
		return fmt.Sprintf("%d, first under %s", len(ds), ds[0].Key)
	}
	return ""
}

func noUnknown(e evidence) string {
	if ks := e.actsOnUnknown(); len(ks) > 0 {
		return fmt.Sprintf("%d, first under %s", len(ks), ks[0])
	}
	return ""
}

func first(whys ...string) string {
	for _, why := range whys {
		if why != "" {
			return why
		}
	}
	return ""
}

func percent(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }

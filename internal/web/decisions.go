package web

import (
	"maps"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Decision is one line of a DecisionList: what was judged and what became of
// it.
type Decision struct {
	ID         string             `json:"id"`
	Time       time.Time          `json:"time"`
	Service    string             `json:"service"`
	Episode    string             `json:"episode"`
	Window     string             `json:"window"`
	Key        string             `json:"key"`
	Step       string             `json:"step"`
	State      string             `json:"state"`
	Verdict    string             `json:"verdict"`
	Hold       bool               `json:"hold"`
	Reasons    []string           `json:"reasons"`
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	// Proposer is who proposed. Fallback is the code of the fault of the model in
	// whose place the rules spoke; the words are with the one decision.
	Proposer       Proposer `json:"proposer"`
	Fallback       string   `json:"fallback,omitempty"`
	Digest         string   `json:"digest"`
	PolicyRevision string   `json:"policyRevision"`
	Effect         string   `json:"effect"`
	Outcome        string   `json:"outcome"`
	Charge         float64  `json:"charge"`
	Shadow         *Shadow  `json:"shadow,omitempty"`
}

// Shadow is what the shadow policy of that moment would have led to. It bound
// nobody.
type Shadow struct {
	Revision string   `json:"revision"`
	Verdict  string   `json:"verdict"`
	Hold     bool     `json:"hold"`
	Reasons  []string `json:"reasons"`
	// Differs: verdict, hold or approvals are others.
	Differs bool `json:"differs"`
	// Fault is why it could not rule.
	Fault string `json:"fault,omitempty"`
}

// Decisions lists what was decided, oldest first.
func Decisions(v View, f Filter) List[Decision] {
	var items []Decision
	for _, id := range v.State.DecisionOrder {
		d := v.State.Decisions[id]
		if d != nil && f.service(d.Service) && f.since(d.Time) {
			items = append(items, decisionOf(d))
		}
	}
	return listOf("DecisionList", items)
}

func decisionOf(d *ledger.Decision) Decision {
	return Decision{
		ID: d.ID, Time: d.Time.UTC(), Service: d.Service, Episode: d.Episode,
		Window: d.Window, Key: string(d.Key), Step: d.Step, State: string(d.State),
		Verdict: d.Decision.Verdict.String(), Hold: d.Decision.Hold,
		Reasons: codes(d.Decision.Reasons),
		Action:  actionWord(d.Proposal), Parameters: parameters(d.Proposal.Parameters),
		Proposer: proposerOf(d.Proposal.Proposer), Fallback: fallbackCode(d.Proposal),
		Digest: d.Decision.Digest, PolicyRevision: d.Decision.Ruling.Revision,
		Effect:  string(orWord(d.Effect, execute.None)),
		Outcome: string(orWord(d.Outcome, compare.OutcomeNone)),
		Charge:  d.Charge, Shadow: shadowOf(d.Shadow),
	}
}

func shadowOf(s *ledger.Shadow) *Shadow {
	if s == nil {
		return nil
	}
	return &Shadow{
		Revision: s.Revision, Verdict: s.Verdict.String(), Hold: s.Hold, Differs: s.Differs, Fault: s.Fault,
		Reasons: append([]string{}, s.Reasons...),
	}
}

// actionWord is the action's name, or what else the proposal said, or why there
// is none.
func actionWord(p propose.Proposal) string {
	switch p.Kind {
	case propose.KindAction:
		return p.Action
	case propose.KindMalformed:
		return propose.FaultCode(p.Fault)
	}
	return string(p.Kind)
}

func parameters(p propose.Parameters) propose.Parameters {
	if p == nil {
		return propose.Parameters{}
	}
	return p
}

func orWord[T ~string](word, otherwise T) T {
	if word == "" {
		return otherwise
	}
	return word
}

// DecisionDetail is one decision with everything that explains it.
type DecisionDetail struct {
	Meta
	Decision
	// Measured is what the service was when it was judged.
	Measured  Measured `json:"measured"`
	Mode      string   `json:"mode"`
	Rationale string   `json:"rationale"`
	Fault     string   `json:"fault,omitempty"`
	// Fallback is the fault of the model in whose place the rules spoke.
	Fallback string `json:"fallback,omitempty"`
	// Exchanges are what was sent to models for it, and what came back; empty for
	// rules, and once the ledger holds the window no longer.
	Exchanges []Exchange `json:"exchanges"`
	Details   []Detail   `json:"details"`
	Rules     []Rule     `json:"rules"`
	Needs     []Need     `json:"needs"`
	Cost      float64    `json:"cost"`
	Receipt   *Receipt   `json:"receipt,omitempty"`
	Judgement *Judgement `json:"judgement,omitempty"`
	Ticket    *Approval  `json:"ticket,omitempty"`
	// Balance is what it had to pay from; null where the documents do not know the
	// action.
	Balance *DecisionBalance `json:"balance"`
	// InputDigest is the SHA-256 of the bytes that policy saw.
	InputDigest string `json:"inputDigest"`
	// Changes are those that policy saw, newest first. Only whoever reads the
	// ledger's bytes has them: the command line, and not the agent's API.
	Changes []Change `json:"changes,omitempty"`
}

// Measured is the assessment that a decision rests on, as recorded.
type Measured struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// Proposer is who proposed.
type Proposer struct {
	Kind     string `json:"kind"`
	Endpoint string `json:"endpoint,omitempty"`
	Model    string `json:"model,omitempty"`
}

// Rule is one policy rule that fired, with its place in the bundle.
type Rule struct {
	Set    string `json:"set"`
	Reason string `json:"reason"`
	Title  string `json:"title"`
	Remedy string `json:"remedy"`
	File   string `json:"file"`
	Line   int    `json:"line"`
}

// Need is one group of people that must approve.
type Need struct {
	Reason         string   `json:"reason"`
	Approvers      []string `json:"approvers"`
	Quorum         int      `json:"quorum"`
	ExpiresSeconds float64  `json:"expiresSeconds"`
	// Missing is how many further approvals it wants; only of an approval.
	Missing *int `json:"missing,omitempty"`
}

// Receipt is what the actuator answered.
type Receipt struct {
	Effect string `json:"effect"`
	// Target is what was acted on.
	Target  string     `json:"target,omitempty"`
	Sent    *time.Time `json:"sent"`
	At      *time.Time `json:"at"`
	Applied *time.Time `json:"applied"`
	Detail  string     `json:"detail"`
	// Settled is who said what became of it, and SettledFor how they knew.
	Settled    string `json:"settledBy,omitempty"`
	SettledFor string `json:"settledFor,omitempty"`
	Void       string `json:"voidedFor,omitempty"`
	// Horizon is until when an effect in doubt may still land.
	Horizon *time.Time `json:"horizon,omitempty"`
}

// Judgement is what measurement said of the effect.
type Judgement struct {
	Outcome    string     `json:"outcome"`
	Objective  string     `json:"objective"`
	Before     float64    `json:"before"`
	After      float64    `json:"after"`
	Recovering bool       `json:"recovering"`
	At         *time.Time `json:"at"`
	Cost       float64    `json:"cost"`
}

// DecisionByID explains one decision; ok is false when there is none of that
// id.
func DecisionByID(v View, id string) (detail DecisionDetail, ok bool) {
	d := v.State.Decisions[id]
	if d == nil {
		return DecisionDetail{}, false
	}
	detail = DecisionDetail{
		Meta:      Meta{APIVersion: apiVersion, Kind: "Decision"},
		Decision:  decisionOf(d),
		Measured:  Measured{State: string(d.State), Reason: string(d.Reason)},
		Mode:      d.Mode.String(),
		Rationale: d.Proposal.Rationale, Fault: d.Proposal.Fault, Fallback: d.Proposal.Fallback,
		Exchanges: exchangesOf(v.State, d),
		Details:   details(d.Decision.Reasons), Rules: Rules(d.Decision.Ruling),
		Needs: needs(d.Decision.Needs), Cost: d.Decision.Cost,
		InputDigest: d.Decision.InputDigest, Balance: decisionBalance(v, d),
	}
	ef := v.State.Effects[d.Key]
	addEffect(&detail, ef, id)
	for _, tid := range slices.Sorted(maps.Keys(v.State.Tickets)) {
		t := v.State.Tickets[tid]
		// The decision that asked, or the one that the answer let act.
		if t.Decision == id || (detail.Receipt != nil && ef.Claim.Ticket == tid) {
			a := approvalOf(*t)
			detail.Ticket = &a
		}
	}
	return detail, true
}

// addEffect joins the claim that this decision made, if it made the one of
// its key: several decisions of a window share the key.
func addEffect(d *DecisionDetail, e *ledger.Effect, id string) {
	if e == nil || e.Claim.Decision != id {
		return
	}
	d.Receipt = &Receipt{
		Effect: string(orWord(e.Effect, execute.None)), Target: e.Claim.Target, Sent: when(e.SentAt()),
		At: when(e.Receipt.At), Applied: when(e.AppliedAt), Detail: e.Receipt.Detail,
		Settled: e.SettledBy, SettledFor: e.SettledFor, Void: e.VoidedFor,
	}
	if e.InDoubt() {
		d.Receipt.Horizon = when(e.Horizon())
	}
	if j := e.Judgement; j != nil {
		d.Judgement = &Judgement{
			Outcome: string(j.Outcome), Objective: j.Objective, Before: j.Before, After: j.After,
			Recovering: j.Recovering, At: when(e.OutcomeAt), Cost: e.Cost,
		}
	}
}

func proposerOf(p propose.Proposer) Proposer {
	return Proposer{Kind: p.Kind, Endpoint: p.Endpoint, Model: p.Model}
}

// fallbackCode names the fault in whose place the rules spoke, without its words:
// they quote strangers.
func fallbackCode(p propose.Proposal) string {
	if p.Fallback == "" {
		return ""
	}
	return propose.FaultCode(p.Fallback)
}

// Rules lists what fired, strictest set first.
func Rules(r gate.Ruling) []Rule {
	out := []Rule{}
	add := func(set string, rules []gate.Rule) {
		for _, rule := range rules {
			out = append(out, Rule{
				Set: set, Reason: rule.Reason, Title: rule.Title, Remedy: rule.Remedy,
				File: rule.File, Line: rule.Line,
			})
		}
	}
	add("deny", r.Deny)
	add("escalate", r.Escalate)
	add("approval", r.Approval)
	add("auto", r.Auto)
	return out
}

func needs(ns []gate.Need) []Need {
	out := make([]Need, 0, len(ns))
	for _, n := range ns {
		out = append(out, Need{
			Reason: n.Reason, Approvers: slices.Clone(n.Approvers), Quorum: n.Quorum,
			ExpiresSeconds: n.Expires.Seconds(),
		})
	}
	return out
}

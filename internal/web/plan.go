package web

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const apiVersion = spec.Group

// Objective is one objective as it was measured. What is not known is null.
type Objective struct {
	Service string   `json:"service,omitempty"`
	Name    string   `json:"name"`
	Sources []string `json:"sources"`
	State   string   `json:"state"`
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail,omitempty"`
	// UnknownFrom is the source that left it unknown.
	UnknownFrom string `json:"unknownFrom,omitempty"`
	// Group is the worst group of an objective that has groups; the numbers here
	// are its. Groups counts them all, GroupsBreached those that are breached.
	Group                string              `json:"group,omitempty"`
	Groups               int                 `json:"groups,omitempty"`
	GroupsBreached       *int                `json:"groupsBreached,omitempty"`
	Target               float64             `json:"target"`
	ErrorRatio           *float64            `json:"errorRatio"`
	JudgeErrorRatio      *float64            `json:"judgeErrorRatio"`
	BurnRates            map[string]*float64 `json:"burnRates"`
	ErrorBudgetRemaining *float64            `json:"errorBudgetRemaining"`
	SampleAgeSeconds     *float64            `json:"sampleAgeSeconds"`
	// WindowSeconds is the SLO's own window, of errorRatio and the error budget;
	// CoveredSeconds is how much of it holds data, where that is less.
	WindowSeconds  float64  `json:"windowSeconds,omitempty"`
	CoveredSeconds *float64 `json:"coveredSeconds,omitempty"`
	// WarmingUntil is when the data covers the long window of each pair, Warming
	// the same of each long window that it does not cover yet.
	WarmingUntil *time.Time            `json:"warmingUntil,omitempty"`
	Warming      map[string]*time.Time `json:"warming,omitempty"`
}

// Balance is the room left in the autonomy budget.
type Balance struct {
	Remaining       float64 `json:"remaining"`
	Capacity        float64 `json:"capacity"`
	GlobalRemaining float64 `json:"globalRemaining"`
}

// PlanItem is what the next pass of one service would do.
type PlanItem struct {
	Service string `json:"service"`
	// Mode is what the document says; EffectiveMode what limits.maxMode leaves
	// of it, where that is less.
	Mode          string      `json:"mode"`
	EffectiveMode string      `json:"effectiveMode,omitempty"`
	State         string      `json:"state"`
	Reason        string      `json:"reason"`
	Objectives    []Objective `json:"objectives"`
	Balance       Balance     `json:"balance"`
	Step          string      `json:"step"`
	Reasons       []string    `json:"reasons"`
	Details       []Detail    `json:"details"`
	Proposal      *Proposal   `json:"proposal,omitempty"`
	Decision      *Verdict    `json:"decision,omitempty"`
	Key           string      `json:"key,omitempty"`
	Error         string      `json:"error,omitempty"`
}

// Proposal is what was proposed. The rationale is the proposer's own words.
type Proposal struct {
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	Rationale  string             `json:"rationale"`
	Proposer   string             `json:"proposer"`
	Endpoint   string             `json:"endpoint,omitempty"`
	Model      string             `json:"model,omitempty"`
	Undo       bool               `json:"undo,omitempty"`
	Fault      string             `json:"fault,omitempty"`
	// Fallback is the fault of the model in whose place the rules spoke.
	Fallback string `json:"fallback,omitempty"`
	// Guess: the agent asks a model, and this is what the rules say.
	Guess bool `json:"guess,omitempty"`
}

// Verdict is the binding answer of the gate.
type Verdict struct {
	Verdict        string   `json:"verdict"`
	Hold           bool     `json:"hold"`
	Reasons        []string `json:"reasons"`
	Details        []Detail `json:"details"`
	Rules          []Rule   `json:"rules"`
	PolicyRevision string   `json:"policyRevision"`
	Digest         string   `json:"digest"`
	Approvers      []string `json:"approvers"`
	Quorum         int      `json:"quorum"`
	Needs          []Need   `json:"needs"`
	Cost           float64  `json:"cost"`
}

// Plan lists what each pass would do under limits.maxMode, in the order of the
// results.
func Plan(set spec.Set, maxMode spec.Mode, results []reconcile.Result) List[PlanItem] {
	items := make([]PlanItem, 0, len(results))
	for _, r := range results {
		items = append(items, PlanOf(set, maxMode, r))
	}
	return listOf("PlanList", items)
}

// PlanOf is what one pass would do.
func PlanOf(set spec.Set, maxMode spec.Mode, r reconcile.Result) PlanItem {
	svc, _ := set.Service(r.Service)
	item := PlanItem{
		Service: r.Service, Mode: svc.Remediation.Mode.String(),
		EffectiveMode: effectiveMode(svc.Remediation.Mode, maxMode),
		State:         string(r.Assessment.State), Reason: string(r.Assessment.Reason),
		Objectives: []Objective{},
		Balance: Balance{
			Remaining: r.Balance.Remaining, Capacity: r.Balance.Capacity,
			GlobalRemaining: r.Balance.GlobalRemaining,
		},
		Step: string(r.Step.Kind), Reasons: codes(r.Step.Reasons), Details: details(r.Step.Reasons),
		Key: string(r.Key),
	}
	for _, o := range r.Assessment.Objectives {
		item.Objectives = append(item.Objectives, objectiveOf(o))
	}
	if r.Proposal != nil {
		item.Proposal = proposalOf(*r.Proposal)
		item.Proposal.Guess = r.Guess
	}
	if r.Decision != nil {
		item.Decision = verdictOf(*r.Decision)
	}
	if r.Err != nil {
		item.Error = r.Err.Error()
	}
	return item
}

func proposalOf(p propose.Proposal) *Proposal {
	return &Proposal{
		Action: actionWord(p), Parameters: parameters(p.Parameters), Rationale: p.Rationale,
		Proposer: p.Proposer.Kind, Endpoint: p.Proposer.Endpoint, Model: p.Proposer.Model,
		Undo: p.Undo, Fault: p.Fault, Fallback: p.Fallback,
	}
}

func verdictOf(d gate.Decision) *Verdict {
	v := &Verdict{
		Verdict: d.Verdict.String(), Hold: d.Hold, Reasons: codes(d.Reasons), Details: details(d.Reasons),
		Rules: Rules(d.Ruling), PolicyRevision: d.Ruling.Revision, Digest: d.Digest,
		Approvers: []string{}, Needs: needs(d.Needs), Cost: d.Cost,
	}
	for _, n := range d.Needs {
		v.Approvers = append(v.Approvers, n.Approvers...)
		v.Quorum = max(v.Quorum, n.Quorum)
	}
	slices.Sort(v.Approvers)
	v.Approvers = slices.Compact(v.Approvers)
	return v
}

func objectiveOf(o compare.Objective) Objective {
	out := Objective{
		Name: o.ID, Sources: slices.Clone(o.Sources), State: string(o.State), Reason: string(o.Reason),
		Detail: o.Detail, UnknownFrom: o.UnknownFrom, Group: o.Group, Groups: o.Groups, Target: o.Target,
		WindowSeconds: o.Period.ID.Window.Seconds(),
		ErrorRatio:    ratio(o.Period), JudgeErrorRatio: ratio(o.Judge),
		BurnRates: map[string]*float64{},
	}
	if out.Sources == nil {
		out.Sources = []string{}
	}
	if o.Groups > 0 {
		out.GroupsBreached = &o.GroupsBreached
	}
	if o.Covered > 0 {
		out.CoveredSeconds = number(o.Covered.Truncate(time.Second).Seconds())
	}
	if left, ok := o.ErrorBudgetRemaining(); ok {
		out.ErrorBudgetRemaining = rounded(left)
	}
	if !o.Judge.SampleAt.IsZero() {
		out.SampleAgeSeconds = number(o.SampleAge.Seconds())
	}
	for _, b := range o.Burns {
		addBurn(&out, b)
	}
	return out
}

func addBurn(out *Objective, b compare.Burn) {
	short, long := duration(b.Short), duration(b.Long)
	if !b.Known {
		for _, w := range []string{short, long} {
			if _, ok := out.BurnRates[w]; !ok {
				out.BurnRates[w] = nil
			}
		}
		return
	}
	out.BurnRates[short], out.BurnRates[long] = rounded(b.ShortRate), rounded(b.LongRate)
	u := when(b.CoveredAt)
	if u == nil {
		return
	}
	if out.Warming == nil {
		out.Warming = map[string]*time.Time{}
	}
	out.Warming[long] = u
	if out.WarmingUntil == nil || u.After(*out.WarmingUntil) {
		out.WarmingUntil = u
	}
}

// ratio is the error ratio, or nothing where it is not known or nothing
// happened.
func ratio(m measure.Measurement) *float64 {
	if !m.Known() || (m.HasEvents && m.Total == 0) {
		return nil
	}
	return rounded(m.ErrorRatio)
}

// Objectives lists every objective of the documents with its newest reading.
func Objectives(v View, f Filter) List[Objective] {
	var items []Objective
	for _, svc := range v.Set.Services {
		known := v.State.Services[svc.Name]
		if !f.service(svc.Name) || (!f.Since.IsZero() && (known == nil || !f.since(known.Since))) {
			continue
		}
		read := v.Last[svc.Name].Assessment.Objectives
		for _, o := range svc.Objectives {
			item := unread(o)
			for _, r := range read {
				if r.ID == o.ID {
					item = objectiveOf(r)
				}
			}
			item.Service = svc.Name
			items = append(items, item)
		}
	}
	return listOf("ObjectiveList", items)
}

func unread(o spec.Objective) Objective {
	out := Objective{
		Name: o.ID, Sources: []string{}, State: string(compare.Unknown), Reason: string(notObserved),
		Target: o.Target, BurnRates: map[string]*float64{}, WindowSeconds: o.Window.Seconds(),
	}
	for _, b := range o.BurnRates {
		out.BurnRates[duration(b.Short)], out.BurnRates[duration(b.Long)] = nil, nil
	}
	return out
}

package web

import (
	"slices"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Explanation is why one service is where it is: what was measured just now,
// what the next pass would do, what the past says, and what would be needed.
type Explanation struct {
	Meta
	// Headline are the five answers that come first.
	Headline []Line   `json:"headline"`
	Service  Service  `json:"service"`
	Plan     PlanItem `json:"plan"`
	Actions  []Action `json:"actions"`
	Budgets  []Budget `json:"budgets"`
	// Changes are what was done to the service lately, newest first. They are
	// context, and a policy may ask a person because of them.
	Changes []Change `json:"changes"`
	// Decision is the newest one of the service.
	Decision  *Decision  `json:"decision,omitempty"`
	Approvals []Approval `json:"approvals"`
	Pages     []Page     `json:"pages"`
	Freezes   []Freeze   `json:"freezes"`
	Needed    []Needed   `json:"needed"`
}

// Needed is what lifts one reason.
type Needed struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Explain joins a plan with what the ledger knows of the service.
func Explain(v View, plan PlanItem) Explanation {
	f := Filter{Service: plan.Service}
	e := Explanation{
		Meta: Meta{APIVersion: apiVersion, Kind: "Explanation"}, Plan: plan,
		Actions: Actions(v, f).Items, Budgets: Budgets(v, f).Items,
		Changes:   changedLately(v, plan.Service),
		Approvals: []Approval{}, Pages: []Page{}, Freezes: []Freeze{}, Needed: Needs(plan),
	}
	e.Needed = append(e.Needed, v.muted(plan.Service, e.Needed)...)
	for _, s := range Services(v, f).Items {
		e.Service = s
	}
	if ds := Decisions(v, f).Items; len(ds) > 0 {
		e.Decision = &ds[len(ds)-1]
	}
	for _, a := range Approvals(v, f).Items {
		if a.State == "open" || a.State == "approved" {
			e.Approvals = append(e.Approvals, a)
		}
	}
	for _, p := range Pages(v, f).Items {
		if p.Ended == nil {
			e.Pages = append(e.Pages, p)
		}
	}
	for _, fr := range Freezes(v, f).Items {
		if fr.Active {
			e.Freezes = append(e.Freezes, fr)
		}
	}
	e.Headline = headline(v, e)
	return e
}

// muted are the modes that keep everything of a service from being sent, as
// far as nothing has told of them: no proposal is judged then, so no floor
// speaks.
func (v View) muted(service string, told []Needed) []Needed {
	svc, _ := v.Set.Service(service)
	if svc.Remediation.Name == "" {
		return nil
	}
	var out []Needed
	for _, m := range []struct {
		code string
		mode spec.Mode
	}{{gate.ReasonMaxMode, v.MaxMode}, {gate.ReasonMode, svc.Remediation.Mode}} {
		one := Needed{Code: m.code, Text: Remedy(m.code)}
		if m.mode < spec.Approval && !slices.Contains(told, one) {
			out = append(out, one)
		}
	}
	return out
}

// Needs lists what would lift each reason of a plan, each once: the remedies
// of the rules that fired, then those of the floors.
func Needs(plan PlanItem) []Needed {
	out := []Needed{}
	add := func(code, text string) {
		one := Needed{Code: code, Text: text}
		if text != "" && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	reasons := plan.Details
	if plan.Decision != nil {
		for _, r := range plan.Decision.Rules {
			if r.Set != "auto" {
				add("policy:"+r.Reason, r.Remedy)
			}
		}
		reasons = append(slices.Clone(plan.Decision.Details), reasons...)
	}
	for _, d := range reasons {
		add(d.Code, Remedy(d.Code))
	}
	return out
}

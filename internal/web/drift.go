package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// Drift is one line of a DriftList: a service that is not what its documents
// say it should be, and what it waits for.
type Drift struct {
	Service string `json:"service"`
	Owner   string `json:"owner"`
	// Mode is what the document says; EffectiveMode what limits.maxMode leaves
	// of it, where that is less.
	Mode          string `json:"mode"`
	EffectiveMode string `json:"effectiveMode,omitempty"`
	State         string `json:"state"`
	Reason        string `json:"reason"`
	Episode       string `json:"episode"`
	// Since is when the episode began.
	Since      time.Time `json:"since"`
	AgeSeconds float64   `json:"ageSeconds"`
	// ErrorRatio is the worst objective's, as it was recorded last.
	ErrorRatio float64 `json:"errorRatio"`
	// Tried counts the effects that were sent in this episode.
	Tried int `json:"tried"`
	// Pending is what is waited for.
	Pending Pending `json:"pending"`
	// Page is the episode's, null without one.
	Page *DriftPage `json:"page"`
	// Planned is the maintenance that is on; null without one.
	Planned *Planned `json:"planned"`
}

// Pending is what an open episode waits for: a reason code with its words.
type Pending struct {
	Code  string     `json:"code"`
	Text  string     `json:"text"`
	Until *time.Time `json:"until,omitempty"`
	// Decision or Ticket is what it is about; "" where it is about none.
	Decision string `json:"decision,omitempty"`
	Ticket   string `json:"ticket,omitempty"`
}

// DriftPage says whether people know.
type DriftPage struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// Drifts lists the services with an open episode, oldest first. Since drops the
// episodes that began before it.
func Drifts(v View, f Filter) List[Drift] {
	var items []Drift
	for _, svc := range v.declared() {
		known, ok := v.State.Service(svc.Name)
		if ok && known.Episode != "" && f.service(svc.Name) && f.since(known.EpisodeSince) {
			items = append(items, driftOf(v, svc, known))
		}
	}
	slices.SortStableFunc(items, func(a, b Drift) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Service, b.Service))
	})
	return listOf("DriftList", items)
}

func driftOf(v View, svc spec.Service, known ledger.Service) Drift {
	d := Drift{
		Service: svc.Name, Owner: svc.Remediation.Owner,
		Mode: svc.Remediation.Mode.String(), EffectiveMode: effectiveMode(svc.Remediation.Mode, v.MaxMode),
		State: string(known.State), Reason: string(known.Reason), Episode: known.Episode,
		Since: known.EpisodeSince.UTC(), AgeSeconds: *seconds(known.EpisodeSince, v.Now), ErrorRatio: known.ErrorRatio,
		Pending: driftPending(v, svc, known), Planned: plannedOf(v, svc.Name),
	}
	if v.Undeclared != nil {
		d.Mode, d.EffectiveMode = undeclared, ""
	}
	for _, key := range known.Effects {
		if e := v.State.Effects[key]; e != nil && e.Claim.Episode == known.Episode && !e.StartedAt.IsZero() {
			d.Tried++
		}
	}
	if p, ok := v.State.Pages[known.Episode]; ok && p.EndedAt.IsZero() {
		d.Page = &DriftPage{ID: p.ID, State: pageOf(*p, nil).State}
	}
	return d
}

// driftPending looks at what is under way, at what people were asked, at what
// the newest pass found, and at what was decided last, in this order.
func driftPending(v View, svc spec.Service, known ledger.Service) Pending {
	if on, _ := v.State.InFlight(svc.Name, ""); on != nil {
		return flightPending(on)
	}
	if k, ok := v.State.OpenTicket(svc.Name); ok {
		code, text := step.ReasonWaitApproval, "an answer to "+k.ID
		if k.State == approve.Approved {
			code, text = step.ReasonApproved, "the pass that runs "+k.ID
		}
		return Pending{Code: code, Text: text, Until: when(k.Expires), Ticket: k.ID}
	}
	if known.State == compare.Met {
		return Pending{Code: "hold-for", Text: "met again, and over after holdFor", Until: when(known.HeldSince.Add(svc.Remediation.HoldFor))}
	}
	return reasonPending(v, known)
}

// reasonPending is the first reason of the newest pass, or of the last decision.
func reasonPending(v View, known ledger.Service) Pending {
	// That a window is spent says less than why its proposal was refused.
	if r, ok := v.Last[known.Name]; ok && len(r.Step.Reasons) > 0 && r.Step.Reasons[0].Code != step.ReasonWindowSpent {
		rs := r.Step.Reasons
		if r.Decision != nil && len(r.Decision.Reasons) > 0 {
			rs = r.Decision.Reasons
		}
		d := details(rs)[0]
		return Pending{Code: d.Code, Text: d.Text, Until: d.Until}
	}
	if d := v.State.Decisions[known.Decision]; d != nil && d.Episode == known.Episode && len(d.Decision.Reasons) > 0 {
		one := details(d.Decision.Reasons)[0]
		return Pending{Code: one.Code, Text: one.Text, Until: one.Until, Decision: d.ID}
	}
	return Pending{Code: string(known.Reason), Text: "nothing was decided in this episode yet"}
}

func flightPending(e *ledger.Effect) Pending {
	name := e.Claim.Action.Name
	p := Pending{Code: step.ReasonAwaiting, Decision: e.Claim.Decision, Text: "the outcome of " + name}
	switch {
	case e.Effect == execute.Unknown:
		p.Code, p.Text = step.ReasonInDoubt, fmt.Sprintf("a person's settle: nobody could find out whether %s acted", name)
	case e.InDoubt():
		p.Code, p.Text, p.Until = step.ReasonInDoubt, "what became of "+name, when(e.Horizon())
	case e.Effect.Judged():
		p.Until = when(e.AppliedAt.Add(e.Claim.Action.Settle))
	}
	return p
}

// TimeToReconcile is how long the episodes took that ended by measured
// recovery, holdFor included. Percentiles are of what was measured, nearest
// rank; null without an episode.
type TimeToReconcile struct {
	// Since is from when episodes are counted by their end.
	Since      time.Time `json:"since"`
	Count      int       `json:"count"`
	P50Seconds *float64  `json:"p50Seconds"`
	P90Seconds *float64  `json:"p90Seconds"`
	MaxSeconds *float64  `json:"maxSeconds"`
	// ByItself counts those in which nothing of ours was applied.
	ByItself int `json:"byItself"`
}

// DriftList is the list with the summary of what is over.
type DriftList struct {
	List[Drift]
	// TimeToReconcile is null where the past was not read.
	TimeToReconcile *TimeToReconcile `json:"timeToReconcile"`
}

// Summarise gives the summary of episodes that took so long each.
func Summarise(took []time.Duration, byItself int, since time.Time) TimeToReconcile {
	out := TimeToReconcile{Since: since.UTC(), Count: len(took), ByItself: byItself}
	if len(took) == 0 {
		return out
	}
	sorted := slices.Sorted(slices.Values(took))
	rank := func(share float64) *float64 {
		at := int(share*float64(len(sorted))+0.999999) - 1
		return number(sorted[min(max(at, 0), len(sorted)-1)].Seconds())
	}
	out.P50Seconds, out.P90Seconds, out.MaxSeconds = rank(0.5), rank(0.9), rank(1)
	return out
}

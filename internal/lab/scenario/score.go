package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Score is what the oracles say of one run.
type Score struct {
	Scenario string `json:"scenario"`
	Proposer string `json:"proposer"`
	// Kind says what stands behind the proposer: scripted, model, or recorded.
	Kind    string `json:"kind"`
	Seed    int    `json:"seed"`
	Service string `json:"service"`
	// State is that of the service's SLO at the end, by the engine over the
	// judge window: met, breached (missed) or unknown.
	State compare.State `json:"state"`
	// Missed: the SLO was missed at some time since the first fault.
	Missed bool `json:"missed"`
	// Recovered: it was missed, and is met at the end. RecoveredAfterSeconds is
	// from the first fault to the instant from which it stayed met.
	Recovered             bool    `json:"recovered"`
	RecoveredAfterSeconds float64 `json:"recoveredAfterSeconds,omitempty"`
	// Held: it was met at every instant of the last holdFor.
	Held bool `json:"held"`
	// Harm is how many failures the actions themselves caused.
	Harm int `json:"harm"`
	// Actions are the effects in the actuator's journal, in order.
	Actions       []Action `json:"actions"`
	DoubleEffects int      `json:"doubleEffects"`
	ActsOnUnknown int      `json:"actsOnUnknown"`
	// Pages are those that reached people, of any service, in order.
	Pages []Page `json:"pages"`
	// Asked is what was asked of a model; nil for a script.
	Asked *Asking `json:"asked,omitempty"`
	// Wrong says what is not as the scenario says is right; empty: all is.
	Wrong []string `json:"wrong"`
}

// Action is one key that the actuator acted on, with what the ledger says of
// it.
type Action struct {
	Service string   `json:"service"`
	Action  string   `json:"action"`
	Key     gate.Key `json:"key"`
	// AfterSeconds is from the first fault on.
	AfterSeconds float64      `json:"afterSeconds"`
	Verdict      gate.Verdict `json:"verdict"`
	ApprovedBy   string       `json:"approvedBy,omitempty"`
	// Effects counts how often the journal has the key; more than once is a
	// double effect.
	Effects int             `json:"effects"`
	Outcome compare.Outcome `json:"outcome"`
}

// Page is one page that a person got.
type Page struct {
	Service string `json:"service"`
	Reason  string `json:"reason"`
	// AfterSeconds is from the first fault to its delivery.
	AfterSeconds float64 `json:"afterSeconds"`
}

// score reads the oracles.
func (w *world) score(ctx context.Context, o Options) (Score, error) {
	out := Score{
		Scenario: w.s.Name, Proposer: o.Proposer, Kind: o.kind(), Seed: o.Seed, Service: w.s.Right.Service,
		Harm: w.shop.Harm(), Actions: []Action{}, Pages: []Page{}, Wrong: []string{},
	}
	if w.asked != nil {
		asked := w.asked.sum()
		out.Asked = &asked
	}
	if err := w.measured(ctx, &out); err != nil {
		return Score{}, err
	}
	var err error
	w.loop.View(func(s *ledger.State) {
		err = errors.Join(w.acted(&out, s), w.paged(&out, s))
	})
	if err != nil {
		return Score{}, err
	}
	out.Wrong = append(out.Wrong, w.s.Right.compare(out)...)
	return out, nil
}

// broke is the time of the first fault.
func (w *world) broke() time.Time {
	first := w.s.Faults[0].At
	for _, f := range w.s.Faults {
		first = min(first, f.At)
	}
	return w.began.Add(first)
}

// after is a time as seconds since the first fault.
func (w *world) after(at time.Time) float64 { return at.Sub(w.broke()).Seconds() }

// measured asks the engine for the SLO at every scrape since the first fault.
func (w *world) measured(ctx context.Context, out *Score) error {
	svc, _ := w.set.Service(out.Service)
	end := w.now.time()
	lastBad := w.broke()
	for at := w.broke(); !at.After(end); at = at.Add(scrape) {
		state, err := w.state(ctx, svc, at)
		if err != nil {
			return err
		}
		out.State = state
		if state != compare.Met {
			lastBad = at
		}
		out.Missed = out.Missed || state == compare.Breached
	}
	out.Recovered = out.Missed && out.State == compare.Met
	if out.Recovered {
		out.RecoveredAfterSeconds = w.after(lastBad.Add(scrape))
	}
	out.Held = out.State == compare.Met && end.Sub(lastBad) > svc.Remediation.HoldFor
	return nil
}

// state is the service's at one instant, from PromQL alone: nothing of the
// agent's own judgement is asked.
func (w *world) state(ctx context.Context, svc spec.Service, at time.Time) (compare.State, error) {
	worst := compare.Met
	for _, o := range svc.Objectives {
		ratio, known, err := w.errorRatio(ctx, o, at)
		switch {
		case err != nil:
			return compare.Unknown, fmt.Errorf("measure %s at %s: %w", o.ID, at, err)
		case known && ratio > 1-o.Target+1e-9:
			return compare.Breached, nil
		case !known:
			worst = compare.Unknown
		}
	}
	return worst, nil
}

// errorRatio is over the judge window. Without a total, or with too few events,
// it is not known; an absent numerator beside a total is zero.
func (w *world) errorRatio(ctx context.Context, o spec.Objective, at time.Time) (ratio float64, known bool, err error) {
	in := o.Indicator
	ask := func(q *spec.Query) (float64, bool, error) { return w.engine.Value(ctx, q.At(o.JudgeWindow), at) }
	if in.Raw != nil {
		ratio, known, err = ask(in.Raw)
		if in.RawSuccess {
			ratio = 1 - ratio
		}
		return ratio, known, err
	}
	total, known, err := ask(in.Total)
	if err != nil || !known || total <= 0 || total < o.MinEvents {
		return 0, false, err
	}
	if in.Bad != nil {
		bad, _, err := ask(in.Bad)
		return bad / total, true, err
	}
	good, _, err := ask(in.Good)
	return 1 - good/total, true, err
}

// acted joins the actuator's journal with the ledger's claims. An effect that
// nobody claimed would make every other number worthless, so it is an error.
func (w *world) acted(out *Score, s *ledger.State) error {
	at := map[gate.Key]int{}
	for _, rec := range w.shop.Journal() {
		if !rec.Applied || rec.DryRun {
			continue
		}
		key := gate.Key(rec.Key)
		if i, again := at[key]; again {
			out.Actions[i].Effects++
			out.DoubleEffects++
			continue
		}
		e := s.Effects[key]
		if e == nil {
			return fmt.Errorf("the actuator carried out %s of %q, which the ledger never claimed", rec.Action, rec.Key)
		}
		at[key] = len(out.Actions)
		out.Actions = append(out.Actions, Action{
			Service: rec.Service, Action: rec.Action, Key: key, AfterSeconds: w.after(rec.Time), Effects: 1,
			Verdict: e.Claim.Verdict, ApprovedBy: approver(s.Tickets[e.Claim.Ticket]), Outcome: e.Outcome,
		})
	}
	for _, e := range s.Effects {
		if e.Claim.State == compare.Unknown {
			out.ActsOnUnknown++
		}
	}
	return nil
}

func approver(t *approve.Ticket) string {
	if t == nil {
		return ""
	}
	for _, a := range t.Answers {
		if a.Approve {
			return a.By
		}
	}
	return ""
}

// paged reads what reached people, and holds it against the ledger: a page that
// is recorded and never arrived is no page.
func (w *world) paged(out *Score, s *ledger.State) error {
	arrived := map[string]bool{}
	for _, p := range w.pager.Pages() {
		arrived[p.ID] = true
		out.Pages = append(out.Pages, Page{
			Service: p.Labels["service"], Reason: p.Labels["reason"], AfterSeconds: w.after(p.OpenedAt),
		})
	}
	for id, p := range s.Pages {
		if !arrived[id] {
			return fmt.Errorf("page %s (%s) of the ledger never reached the pager", id, p.Reason)
		}
	}
	return nil
}

package incident

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Score is what the oracles say of one run.
type Score struct {
	Incident     string  `json:"incident"`
	SweepSeconds float64 `json:"sweepSeconds"`
	// Services are all of the documents, by name.
	Services []Service `json:"services"`
	// Fleet are the pages that belong to no service, by id.
	Fleet map[string][]Paged `json:"fleet"`
	// MaxPerHour is the most effects of one service within any hour, and
	// MaxPerHourAll of all of them.
	MaxPerHour    int `json:"maxPerHour"`
	MaxPerHourAll int `json:"maxPerHourAll"`
	DoubleEffects int `json:"doubleEffects"`
	ActsOnUnknown int `json:"actsOnUnknown"`
	// Wrong says what is not as the incident says is right; empty: all is.
	Wrong []string `json:"wrong"`
}

// Service is what was done for one service, and how it is.
type Service struct {
	Service string `json:"service"`
	// State is that of its SLOs at the end, by the engine over the judge window.
	State compare.State `json:"state"`
	// Effects are what its actuators carried out, Sent how many requests came.
	Effects []Effected `json:"effects"`
	Sent    int        `json:"sent"`
	// Approvals are the tickets, each as "action end".
	Approvals []string `json:"approvals"`
	// Pages are the reasons for which people were told.
	Pages []Paged `json:"pages"`
	// Verdict and Reasons are the newest decision's; empty without one.
	Verdict string   `json:"verdict,omitempty"`
	Reasons []string `json:"reasons"`
	// Said are all reasons that its passes gave.
	Said []string `json:"said"`
	// wanted are the actions that were asked for or claimed.
	wanted []string
}

// Effected is one effect, with what measurement said of it.
type Effected struct {
	Action       string          `json:"action"`
	Undo         bool            `json:"undo,omitempty"`
	Key          gate.Key        `json:"key"`
	AfterSeconds float64         `json:"afterSeconds"`
	Outcome      compare.Outcome `json:"outcome"`
	at           time.Time
}

// Text is the effect as Right has it.
func (e Effected) Text() string {
	if e.Undo {
		return undoPrefix + e.Action
	}
	return e.Action
}

// Paged is one reason for which a receiver was told.
type Paged struct {
	Reason       string  `json:"reason"`
	To           string  `json:"to"`
	AfterSeconds float64 `json:"afterSeconds"`
}

// Text is the page as Right has it.
func (p Paged) Text() string {
	if p.To == oncall {
		return p.Reason
	}
	return p.Reason + " to " + p.To
}

// undoPrefix marks an action that takes an earlier one back.
const undoPrefix = "undo "

// score reads the oracles.
func (w *world) score(ctx context.Context) (Score, error) {
	past, err := w.past(ctx)
	if err != nil {
		return Score{}, err
	}
	out := Score{Incident: w.in.Name, SweepSeconds: w.sweep.Seconds(), Fleet: map[string][]Paged{}, Wrong: []string{}}
	for _, svc := range w.set.Services {
		s := Service{Service: svc.Name, Effects: []Effected{}, Approvals: []string{}, Pages: []Paged{}, Reasons: []string{}, Said: []string{}}
		if s.State, err = w.state(ctx, svc); err != nil {
			return Score{}, err
		}
		w.decided(&s, past)
		out.Services = append(out.Services, s)
	}
	if err := w.acted(&out, past); err != nil {
		return Score{}, err
	}
	w.paged(&out)
	out.rates()
	out.Wrong = append(out.Wrong, w.in.Right.compare(out, w.in.Limits)...)
	return out, nil
}

// past folds the whole chain, which forgets nothing.
func (w *world) past(ctx context.Context) (*ledger.State, error) {
	s := ledger.NewHistory()
	for after := uint64(0); ; {
		entries, err := w.store.Read(ctx, after, 1000)
		if err != nil || len(entries) == 0 {
			return s, err
		}
		for _, e := range entries {
			if err := s.Apply(e); err != nil {
				return nil, fmt.Errorf("fold entry %d: %w", e.Seq, err)
			}
		}
		after = entries[len(entries)-1].Seq
	}
}

// state is the service's now, from PromQL alone: nothing of the agent's own
// judgement is asked.
func (w *world) state(ctx context.Context, svc spec.Service) (compare.State, error) {
	worst := compare.Met
	for _, o := range svc.Objectives {
		ratio, known, err := w.errorRatio(ctx, o)
		switch {
		case err != nil:
			return compare.Unknown, fmt.Errorf("measure %s: %w", o.ID, err)
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
func (w *world) errorRatio(ctx context.Context, o spec.Objective) (ratio float64, known bool, err error) {
	ask := func(q *spec.Query) (float64, bool, error) { return w.engine.Value(ctx, q.At(o.JudgeWindow), w.now()) }
	in := o.Indicator
	if in.Total == nil {
		return 0, false, fmt.Errorf("an indicator without a total")
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

// decided is what the ledger holds of tickets and decisions.
func (w *world) decided(s *Service, past *ledger.State) {
	sv, _ := past.Service(s.Service)
	for _, id := range sv.Tickets {
		t := past.Tickets[id]
		s.Approvals = append(s.Approvals, t.Proposal.Action+" "+string(t.State))
		s.wanted = append(s.wanted, t.Proposal.Action)
	}
	if d := past.Decisions[sv.Decision]; d != nil {
		s.Verdict = d.Decision.Verdict.String()
		for _, r := range d.Decision.Reasons {
			s.Reasons = append(s.Reasons, r.Code)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for code := range w.said[s.Service] {
		s.Said = append(s.Said, code)
	}
	slices.Sort(s.Said)
}

// acted joins the actuators' journals with the ledger's claims. An effect that
// nobody claimed would make every other number worthless, so it is an error.
func (w *world) acted(out *Score, past *ledger.State) error {
	applied := map[gate.Key]int{}
	for _, rec := range w.actuators.journal() {
		s := out.service(rec.Service)
		if rec.Of == 0 && s != nil {
			s.Sent++
		}
		if !rec.Applied || rec.DryRun {
			continue
		}
		key := gate.Key(rec.Key)
		e := past.Effects[key]
		if e == nil || s == nil {
			return fmt.Errorf("an actuator carried out %s of %q, which the ledger never claimed", rec.Action, rec.Key)
		}
		if applied[key]++; applied[key] > 1 {
			out.DoubleEffects++
			continue
		}
		s.Effects = append(s.Effects, Effected{
			Action: rec.Action, Undo: e.Claim.Undo, Key: key, AfterSeconds: rec.Time.Sub(w.began).Seconds(), Outcome: e.Outcome, at: rec.Time,
		})
	}
	out.claimed(past)
	return nil
}

func (s *Score) claimed(past *ledger.State) {
	for _, e := range past.Effects {
		if e.Claim.State == compare.Unknown {
			s.ActsOnUnknown++
		}
		if svc := s.service(e.Service); svc != nil {
			svc.wanted = append(svc.wanted, e.Claim.Action.Name)
		}
	}
}

func (s *Score) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Service == name {
			return &s.Services[i]
		}
	}
	return nil
}

// paged reads what reached people. The same reason about the same thing again
// is no second one, unless another came between or the page had ended.
func (w *world) paged(out *Score) {
	last := map[string]string{}
	for _, t := range w.phone.all() {
		who := t.about + " to " + t.receiver
		if t.ended {
			delete(last, who)
			continue
		}
		if goesOn(t.reason) || last[who] == t.reason {
			continue
		}
		last[who] = t.reason
		page := Paged{Reason: t.reason, To: t.receiver, AfterSeconds: t.at.Sub(w.began).Seconds()}
		if s := out.service(t.about); s != nil {
			s.Pages = append(s.Pages, page)
		} else {
			out.Fleet[t.about] = append(out.Fleet[t.about], page)
		}
	}
}

// rates finds the worst hours.
func (s *Score) rates() {
	var all []time.Time
	for _, svc := range s.Services {
		var own []time.Time
		for _, e := range svc.Effects {
			own = append(own, e.at)
		}
		s.MaxPerHour = max(s.MaxPerHour, worstHour(own))
		all = append(all, own...)
	}
	slices.SortFunc(all, time.Time.Compare)
	s.MaxPerHourAll = worstHour(all)
}

// worstHour is how many of the sorted instants lie within one hour at most.
func worstHour(at []time.Time) int {
	most := 0
	for i := range at {
		n := 0
		for _, t := range at[i:] {
			if t.Sub(at[i]) < time.Hour {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

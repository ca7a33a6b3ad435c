package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// score is what the ledger says of one service and action in one period.
type score struct {
	Service string `json:"service"`
	Action  string `json:"action"`
	// Mode is what the document says; EffectiveMode what limits.maxMode leaves
	// of it, where that is less.
	Mode          string `json:"mode"`
	EffectiveMode string `json:"effectiveMode,omitempty"`
	// WatchedSeconds is how much of the period the service was known to be met or
	// breached. Gaps is how often nobody watched for a while; the ledger has no
	// length of that, and GapsSeconds is the most that all of them can be: a pass
	// that finds nothing new writes nothing.
	PeriodSeconds  float64 `json:"periodSeconds"`
	WatchedSeconds float64 `json:"watchedSeconds"`
	Gaps           int     `json:"gaps"`
	GapsSeconds    float64 `json:"gapsSeconds"`
	// WouldHaveActed are the windows with a recorded decision that, but for mode
	// and limits.maxMode, would have been auto or approval. HeldByCooldown are
	// further such windows, in which the action's cooldown or the judgement of the
	// one before would have held it.
	WouldHaveActed int `json:"wouldHaveActed"`
	HeldByCooldown int `json:"heldByCooldown"`
	// WouldHaveCost is what that costs at most: the measured outcomes of what ran,
	// and, for what did not run, noChange unless the service was well again by
	// itself within settle and judge window. It is an estimate of what did not
	// happen and no measurement. Charged is what really was charged.
	WouldHaveCost float64 `json:"wouldHaveCost"`
	Charged       float64 `json:"charged"`
	Capacity      float64 `json:"capacity"`
	// RecoveredByItself are the breaches of the service that ended without any
	// effect of ours; AfterWouldHaveActed those of them in which this action would
	// have acted.
	RecoveredByItself   int `json:"recoveredByItself"`
	AfterWouldHaveActed int `json:"afterWouldHaveActed"`
	// Approved, Denied and Expired are the action's tickets; PersonRan those that
	// were approved and sent.
	Approved  int `json:"approved"`
	Denied    int `json:"denied"`
	Expired   int `json:"expired"`
	PersonRan int `json:"personRan"`
	// Outcomes counts what ran by its measured outcome ("pending" while there is
	// none), Recovering how many of them fell on a service that was recovering.
	Outcomes   map[string]int `json:"outcomes"`
	Recovering int            `json:"recovering"`
	// Unread are decisions from which nothing can be told, because their floors
	// were not recorded.
	Unread int `json:"unread"`
	// Earned is the rung of the ladder, Why and Next its rules, Against what speaks
	// against it where it is not only too early to tell; CappedAt is what
	// documents allow at most, CappedBy by which of their keys.
	Earned   string   `json:"earned"`
	Why      []string `json:"why"`
	Next     string   `json:"next"`
	Against  []string `json:"against"`
	CappedAt string   `json:"cappedAt,omitempty"`
	CappedBy []string `json:"cappedBy,omitempty"`
	// Edits are what a person could commit.
	Edits []edit `json:"edits"`

	rung, cap spec.Mode
	trials    []trial
}

// trial is one window in which the action would have acted.
type trial struct {
	at       time.Time
	decision string
	episode  string
	ran      bool
}

// scorer builds scores.
type scorer struct {
	c       *chronicle
	set     spec.Set
	blob    func(ctx context.Context, digest string) ([]byte, error)
	maxMode spec.Mode
	// config is the name of the configuration.
	config string
	// from and to are the period.
	from, to time.Time
	// acted are the episodes with an effect of ours; decisions and effects those of
	// the period, by service and action.
	acted     map[string]bool
	decisions map[string][]*ledger.Decision
	effects   map[string][]*ledger.Effect
}

// scores are those of every action of the documents, or of one service's.
func (s *scorer) scores(ctx context.Context, service string) ([]score, error) {
	s.index()
	out := []score{}
	for _, svc := range s.set.Services {
		if service != "" && svc.Name != service {
			continue
		}
		for _, a := range svc.Remediation.Actions {
			one, err := s.score(ctx, svc, a)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	for i := range out {
		svc, _ := s.set.Service(out[i].Service)
		out[i].Edits = s.edits(svc, out[i], out)
	}
	return out, nil
}

func (s *scorer) score(ctx context.Context, svc spec.Service, a spec.Action) (score, error) {
	watched, met := s.c.watched(svc.Name, s.from, s.to)
	out := score{
		Service: svc.Name, Action: a.Name, Mode: svc.Remediation.Mode.String(),
		PeriodSeconds: s.to.Sub(s.from).Seconds(), WatchedSeconds: watched.Truncate(time.Second).Seconds(),
		Capacity: svc.Remediation.Budget.Capacity,
		Outcomes: map[string]int{}, Why: []string{}, Against: []string{}, Edits: []edit{},
	}
	gaps, most := s.c.gapsOf(svc.Name, s.from, s.to)
	out.Gaps, out.GapsSeconds = gaps, most.Truncate(time.Second).Seconds()
	if s.maxMode < svc.Remediation.Mode {
		out.EffectiveMode = s.maxMode.String()
	}
	if err := s.wouldHave(ctx, svc, a, &out); err != nil {
		return out, err
	}
	ran := s.ran(svc, a, &out)
	s.byItself(svc, &out)
	s.people(svc, a, &out)
	record := budget.Record{
		Watched: watched, EverMet: met, SpecProblem: s.doubt(svc),
		WouldHaveActed: out.WouldHaveActed, Projected: out.WouldHaveCost,
		Approved: out.Approved, Denied: out.Denied, Ran: ran,
		Suspended: s.c.state.Suspended(svc.Name, a.Name, s.to),
	}
	s.demoted(svc, a, &record)
	earned := budget.Earn(record, budget.Policy{Period: svc.Remediation.Budget.Period, Capacity: svc.Remediation.Budget.Capacity})
	out.Earned, out.Why, out.Next, out.Against, out.rung = earned.Rung.String(), earned.Why, earned.Next, earned.Against, earned.Rung
	s.caps(svc, a, &out)
	return out, nil
}

// doubt says why the objective itself is in doubt; "" when it is not.
func (s *scorer) doubt(svc spec.Service) string {
	known, _ := s.c.state.Service(svc.Name)
	if known.Documents != "" && known.State != "" && !known.EverMet {
		return "never met since its documents were loaded"
	}
	return ""
}

// index sorts what the chain has of each service and action, so that scoring many
// actions reads it once.
func (s *scorer) index() {
	s.acted, s.decisions, s.effects = s.c.acted(), map[string][]*ledger.Decision{}, map[string][]*ledger.Effect{}
	for _, id := range s.c.state.DecisionOrder {
		d := s.c.state.Decisions[id]
		if p := d.Proposal; s.within(d.Time) && p.Kind == propose.KindAction && !p.Undo {
			of := d.Service + " " + p.Action
			s.decisions[of] = append(s.decisions[of], d)
		}
	}
	for _, key := range s.c.state.EffectOrder {
		e := s.c.state.Effects[key]
		if s.within(e.ClaimedAt) && !e.Claim.Undo {
			of := e.Service + " " + e.Claim.Action.Name
			s.effects[of] = append(s.effects[of], e)
		}
	}
}

// wouldHave finds the windows in which the action would have acted, and what
// that would have cost.
func (s *scorer) wouldHave(ctx context.Context, svc spec.Service, a spec.Action, out *score) error {
	seen := map[string]bool{}
	var free time.Time // from when it could have acted again
	for _, d := range s.decisions[svc.Name+" "+a.Name] {
		if seen[d.Window] {
			continue
		}
		if d.Floors == "" {
			out.Unread++
		}
		verdict, err := s.verdictBut(ctx, d)
		if err != nil {
			return err
		}
		ran := s.sent(d, a.Name)
		if verdict < gate.Approval && !ran {
			continue
		}
		seen[d.Window] = true
		if !ran && d.Time.Before(free) {
			out.HeldByCooldown++
			continue
		}
		free = d.Time.Add(max(a.Cooldown, a.Settle+judgeWindow(svc)))
		out.trials = append(out.trials, trial{d.Time, d.ID, d.Episode, ran})
		if !ran {
			out.WouldHaveCost += s.projected(svc, a, d.Time)
		}
	}
	out.WouldHaveActed = len(out.trials)
	return nil
}

// sent reports whether the key of a decision was used to send the action.
func (s *scorer) sent(d *ledger.Decision, action string) bool {
	e := s.c.state.Effects[d.Key]
	return e != nil && e.Claim.Action.Name == action && !e.StartedAt.IsZero()
}

func (s *scorer) within(at time.Time) bool { return !at.Before(s.from) && !at.After(s.to) }

// verdictBut is the recorded decision without the ceilings of mode. The ruling
// is the recorded one: nothing is asked again.
func (s *scorer) verdictBut(ctx context.Context, d *ledger.Decision) (gate.Verdict, error) {
	if d.Floors == "" {
		if d.Decision.Hold {
			return gate.Deny, nil
		}
		return d.Decision.Verdict, nil
	}
	raw, err := s.blob(ctx, d.Floors)
	if err != nil {
		return gate.Deny, fmt.Errorf("floors of %s: %w", d.ID, err)
	}
	var f gate.Floors
	if err := json.Unmarshal(raw, &f); err != nil {
		return gate.Deny, fmt.Errorf("floors of %s: %w", d.ID, err)
	}
	v := gate.Auto
	for _, x := range f.Findings(d.Decision.Ruling) {
		if x.Reason.Code == gate.ReasonMode || x.Reason.Code == gate.ReasonMaxMode {
			continue
		}
		switch x.Effect {
		case "auto":
		case "approval":
			v = min(v, gate.Approval)
		case "escalate":
			v = min(v, gate.Escalate)
		default: // deny, silent and hold: it would not have acted either
			return gate.Deny, nil
		}
	}
	return v, nil
}

// projected is what a claim would have cost that was not made, had the action
// not helped: nothing where the service was well again by itself before the
// outcome would have been measured.
func (s *scorer) projected(svc spec.Service, a spec.Action, at time.Time) float64 {
	if s.c.goodWithin(svc.Name, at, a.Settle+judgeWindow(svc)) {
		return 0
	}
	return svc.Remediation.Budget.Costs.NoChange
}

// judgeWindow is the longest of a service's objectives.
func judgeWindow(svc spec.Service) time.Duration {
	longest := time.Duration(0)
	for _, o := range svc.Objectives {
		longest = max(longest, o.JudgeWindow)
	}
	return cmp.Or(longest, spec.DefaultJudgeWindow)
}

// ran are the effects of the action that may have changed something, with what
// they cost by their outcomes.
func (s *scorer) ran(svc spec.Service, a spec.Action, out *score) []budget.Ran {
	var all []budget.Ran
	for _, e := range s.effects[svc.Name+" "+a.Name] {
		out.Charged += e.Charge()
		if !mayHaveActed(e) {
			continue
		}
		one := ranOf(e)
		if one.Recovering {
			out.Recovering++
		}
		out.Outcomes[string(one.Outcome)]++
		out.WouldHaveCost += budget.Cost(one.Outcome, one.Recovering, svc.Remediation.Budget.Costs)
		all = append(all, one)
	}
	return all
}

// ranOf is an effect as the ladder looks at it.
func ranOf(e *ledger.Effect) budget.Ran {
	one := budget.Ran{
		Decision: e.Claim.Decision, Episode: e.Claim.Episode, At: e.ClaimedAt,
		ByPerson: e.Claim.Ticket != "", Outcome: e.Outcome,
	}
	if e.Effect == execute.Unknown {
		one.Outcome = compare.OutcomeUnknown
	} else if e.InDoubt() {
		one.Outcome = compare.OutcomePending
	}
	if e.Judgement != nil {
		one.Recovering = e.Judgement.Recovering
	}
	return one
}

// mayHaveActed: it was sent, and nobody said that nothing was done.
func mayHaveActed(e *ledger.Effect) bool {
	return e.Effect.Judged() || e.InDoubt() || e.Effect == execute.Unknown
}

// byItself counts the breaches that ended without any effect of ours.
func (s *scorer) byItself(svc spec.Service, out *score) {
	for _, one := range s.c.episodes {
		if one.service != svc.Name || !one.breached || one.ended.IsZero() || !s.within(one.ended) || s.acted[one.service+" "+one.id] {
			continue
		}
		out.RecoveredByItself++
		if slices.ContainsFunc(out.trials, func(t trial) bool { return t.episode == one.id }) {
			out.AfterWouldHaveActed++
		}
	}
}

// people counts what they answered.
func (s *scorer) people(svc spec.Service, a spec.Action, out *score) {
	known, _ := s.c.state.Service(svc.Name)
	for _, id := range known.Tickets {
		t := s.c.state.Tickets[id]
		if t == nil || t.Proposal.Action != a.Name || !s.within(t.Asked) {
			continue
		}
		if !t.StartedAt.IsZero() {
			out.PersonRan++
		}
		switch t.State {
		case approve.Approved:
			out.Approved++
		case approve.Denied:
			out.Denied++
		case approve.Expired:
			out.Expired++
		}
	}
}

// demoted fills the ceiling of the ledger that is in force.
func (s *scorer) demoted(svc spec.Service, a spec.Action, r *budget.Record) {
	to := s.c.state.Ceiling(svc.Name, a.Name, s.to)
	if to >= gate.Auto {
		return
	}
	r.DemotedTo, r.Demoted = modeOf(to), to.String()+" at most"
	if c, ok := s.c.state.Lowering(svc.Name, a.Name, s.to); ok {
		r.Demoted = fmt.Sprintf("%s at most, by %s: %s", to, c.By, c.Reason)
	}
}

// modeOf is the rung with that highest verdict: their words are in one order.
func modeOf(v gate.Verdict) spec.Mode { return spec.Mode(v) }

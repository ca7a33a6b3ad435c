package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// InputApprovers stands in a Case of an input for the approvers that the
// Remediation names, which an input does not hold.
const InputApprovers = "@approvers"

// CaseOf makes a Case of an input: BuildInput gives the same bytes of it that it
// gave of the Case which the input was built from. What an input does not hold
// is clear: see NotInInput. Costs, approvers and expiry are those of a
// Remediation without its own, with InputApprovers.
//
// No permit can be minted of it: an input does not say what would be sent, so
// the digest of its decision is not that of the action.
func CaseOf(input []byte) (Case, error) {
	if err := ValidateInput(input); err != nil {
		return Case{}, err
	}
	var d document
	if err := json.Unmarshal(input, &d); err != nil {
		return Case{}, fmt.Errorf("gate input: %w", err)
	}
	now, err := time.Parse(time.RFC3339Nano, d.Now)
	if err != nil {
		return Case{}, fmt.Errorf("gate input: now: %w", err)
	}
	x := inverse{d: d, now: now.UTC()}
	c := Case{Proposal: x.proposal(), Limits: Limits{MaxMode: spec.Auto, EffectsPerHour: 1, EffectsPerServicePerHour: 1, OpenApproval: 1}}
	if d.Window.Key != Unknown {
		c.Key = Key(d.Window.Key)
	}
	c.Service = x.service(c.Proposal)
	c.Facts = x.facts(c.Service)
	return c, nil
}

// NotInInput are the floors about which an input says nothing, by reason code:
// CaseOf takes them as clear.
func NotInInput() []string {
	return []string{
		ReasonFreeze, ReasonKeyClaimed, ReasonInFlight, ReasonInFlightTarget, ReasonSpacing, ReasonCapService, ReasonCapGlobal,
		ReasonCooldown, ReasonStorm, ReasonBreachFor, ReasonSpecProblem, ReasonFreshReads, ReasonSilencesUnreadable, ReasonClock,
		ReasonMaxMode, ReasonLedgerCeiling, ReasonSuspended, ReasonBounds, ReasonPersonHold, ReasonUnanswered, ReasonOpenApprovals,
		ReasonExpired, ReasonDigest,
	}
}

// inverse takes BuildInput back.
type inverse struct {
	d   document
	now time.Time
}

func (x inverse) service(p propose.Proposal) spec.Service {
	r := spec.DefaultRemediation(x.d.Service.Name)
	r.Owner, r.Mode, r.Approvers = x.d.Service.Owner, mode(x.d.Service.Mode), []string{InputApprovers}
	for _, dep := range x.d.Dependencies {
		r.DependsOn = append(r.DependsOn, dep.Service)
	}
	if a, ok := x.action(p); ok {
		r.Actions = []spec.Action{a}
	}
	svc := spec.Service{Name: x.d.Service.Name, Remediation: r}
	for _, o := range x.d.State.Objectives {
		if by := groupLabels(word(o.Group, "none")); by != nil {
			svc.Objectives = append(svc.Objectives, spec.Objective{ID: o.ID, GroupBy: by})
		}
	}
	return svc
}

// action is the proposed one; none when the documents do not have it.
func (x inverse) action(p propose.Proposal) (spec.Action, bool) {
	in := x.d.Action
	if in.Mark == Unknown {
		return spec.Action{}, false
	}
	a := spec.Action{
		Name: p.Action, Uses: in.Uses, Class: spec.Class(word(string(in.Class), Unknown)),
		Reversal: spec.Reversal(word(string(in.Reversal), Unknown)),
	}
	a.Target = targetOf(a, in.Target, in.Mark != markEnum(spec.MarkUnmarked))
	// Bounds are not in an input: what was proposed is within them.
	for name, v := range p.Parameters {
		a.Parameters = append(a.Parameters, parameterOf(name, v))
	}
	return a, true
}

// parameterOf is one that takes the value.
func parameterOf(name string, v any) spec.Parameter {
	switch v := v.(type) {
	case bool:
		return spec.Parameter{Name: name, Type: spec.Boolean}
	case string:
		return spec.Parameter{Name: name, Type: spec.String, Enum: []string{v}}
	default:
		return spec.Parameter{Name: name, Type: spec.Number}
	}
}

// targetOf finds a target of that canonical name.
func targetOf(a spec.Action, canonical string, marked bool) spec.Target {
	if argv, ok := argvOf(canonical); ok {
		a.Target = spec.Target{Argv: argv}
		if a.Canonical() == canonical && (a.Executor() == "command" || !strings.HasPrefix(canonical, a.Executor()+" ")) {
			if marked {
				a.Target.StatusArgv = argv
			}
			return a.Target
		}
	}
	a.Target = spec.Target{URL: strings.TrimPrefix(canonical, a.Executor()+" ")}
	if marked {
		a.Target.StatusURL = a.Target.URL
		if a.Target.StatusURL == "" {
			a.Target.StatusURL = Unknown
		}
	}
	return a.Target
}

func (x inverse) proposal() propose.Proposal {
	in := x.d.Proposal
	return propose.Proposal{
		Kind: propose.KindAction, Action: in.Action, Parameters: exact(in.Parameters), Undo: in.Undo,
		Proposer: propose.Proposer{Kind: word(in.Proposer.Kind, Unknown), Endpoint: in.Proposer.Endpoint, Model: in.Proposer.Model},
	}
}

func (x inverse) facts(svc spec.Service) Facts {
	d, b := x.d, x.d.Balance
	f := Facts{
		Now: x.now, Assessment: x.assessment(), Since: x.ago(d.State.SinceSeconds), Episode: word(d.State.Episode, Unknown),
		FreshReads: 2, Ceiling: Auto, Dependencies: map[string]compare.State{}, Ownership: word(d.Ownership, Unknown),
		// The global capacity is not in an input.
		Balance:            budget.Balance{Remaining: b.Remaining.float(), Capacity: b.Capacity.float(), GlobalRemaining: b.Global.float(), GlobalCapacity: math.NaN()},
		DocumentsChangedAt: x.ago(d.Documents.ChangedSeconds),
		Item:               propose.Item{Live: exactLive(d.Live.Values), LiveKnown: d.Live.Known},
	}
	f.Item.Action, _ = svc.Action(d.Proposal.Action)
	for _, dep := range d.Dependencies {
		f.Dependencies[dep.Service] = compare.State(dep.State)
	}
	for _, m := range d.Maintenance {
		f.Maintenances = append(f.Maintenances, Hold{ID: m.ID, By: m.By, Effect: mode(m.Effect), Until: x.ahead(m.UntilSeconds)})
	}
	for _, e := range d.Exceptions {
		f.Exceptions = append(f.Exceptions, spec.Exception{
			Name: e.Name, Service: svc.Name, Owner: e.Owner, Effect: mode(e.Effect), Until: x.ahead(e.UntilSeconds),
		})
	}
	for _, s := range d.Silences {
		f.Silences = append(f.Silences, Hold{ID: s.ID, By: s.By, Until: x.ahead(s.UntilSeconds)})
	}
	for _, ch := range d.Changes {
		f.Changes = append(f.Changes, measure.Change{At: x.ago(ch.SecondsAgo), What: ch.What, Version: ch.Version})
	}
	for _, t := range d.Tried {
		f.Tried = append(f.Tried, propose.Tried{
			Action: t.Action, Parameters: exact(t.Parameters), At: x.ago(t.SecondsAgo), Effect: t.Effect,
			Outcome: compare.Outcome(t.Outcome), Before: t.Before.float(), After: t.After.float(), ThisEpisode: t.ThisEpisode,
		})
	}
	return f
}

func (x inverse) assessment() compare.Assessment {
	s := x.d.State
	a := compare.Assessment{Service: x.d.Service.Name, At: x.now, State: compare.State(s.State), Reason: stateReason(s.State, s.Reason)}
	for _, o := range s.Objectives {
		a.Objectives = append(a.Objectives, x.objective(o))
	}
	a.Warming = warming(a.Objectives)
	return a
}

// stateReason is "" where the input says unknown for want of one.
func stateReason(s stateEnum, reason string) compare.Reason {
	if reason == Unknown && s != stateEnum(compare.Met) {
		return ""
	}
	return compare.Reason(reason)
}

func (x inverse) objective(in objectiveIn) compare.Objective {
	o := compare.Objective{
		ID: in.ID, State: compare.State(in.State), Reason: stateReason(in.State, in.Reason), Target: in.Target.float(),
		Group: word(in.Group, "none"), SampleAge: in.SampleAgeSeconds.duration(),
		Judge: measure.Measurement{Reason: measure.NoData}, Period: measure.Measurement{Reason: measure.NoData},
	}
	if o.Group != "" {
		// An input names the worst group alone.
		o.Groups, o.GroupsBreached = 1, 1
	}
	if in.JudgeErrorRatio.Known {
		at := x.now.Add(-o.SampleAge)
		if at.IsZero() {
			at = at.Add(1)
		}
		o.Judge = measure.Measurement{ErrorRatio: in.JudgeErrorRatio.Value, SampleAt: at}
	}
	if left := in.ErrorBudgetRemaining; left.Known {
		// ErrorBudgetRemaining the other way round; rounding gives the same back.
		o.Period = measure.Measurement{ErrorRatio: (1 - left.Value) * (1 - o.Target)}
	}
	for _, b := range in.BurnRates {
		burn := compare.Burn{
			BurnRate:  spec.BurnRate{Short: seconds(b.ShortSeconds), Long: seconds(b.LongSeconds), Factor: b.Factor.float(), Page: b.Page},
			ShortRate: b.ShortRate.float(), LongRate: b.LongRate.float(), Known: b.ShortRate.Known || b.LongRate.Known, Burning: b.Burning,
		}
		if !b.Covered {
			// An input does not say until when.
			burn.CoveredAt = x.now.Add(1)
		}
		o.Burns = append(o.Burns, burn)
	}
	return o
}

// warming is as in compare: every page pair that burns, of the objectives on
// which something is to be done, has a long window that is not covered.
func warming(all []compare.Objective) bool {
	pick := func(burning bool) (out []compare.Objective) {
		for _, o := range all {
			if o.State == compare.Breached && (!burning || o.Reason == compare.Burning) {
				out = append(out, o)
			}
		}
		return out
	}
	acting := pick(true)
	if len(acting) == 0 {
		acting = pick(false)
	}
	found := false
	for _, o := range acting {
		for _, b := range o.Burns {
			if !b.Page || !b.Burning {
				continue
			}
			if b.CoveredAt.IsZero() {
				return false
			}
			found = true
		}
	}
	return found
}

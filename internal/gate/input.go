package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// InputVersion is the version of the document that policy sees.
const InputVersion = "setpoint.dev/gate/v1"

// Unknown stands in the input for what is not known.
const Unknown = "unknown"

// MaxInput is the largest input that policy looks at, in bytes. What exceeds
// it is denied, never evaluated in part.
const MaxInput = 256 << 10

// BuildInput makes the one document that policy sees, in canonical JSON
// (RFC 8785). The same Case gives the same bytes. It holds measured facts and
// reviewed documents, and no word of a model: neither a rationale nor a
// source's own words for a fault.
func BuildInput(c Case) ([]byte, error) {
	if c.Proposal.Parameters != nil {
		if err := checkValues(c.Proposal.Parameters); err != nil {
			return nil, fmt.Errorf("gate input: %w", err)
		}
	}
	doc := document{
		Version: InputVersion, Now: stamp(c.Facts.Now),
		Service:      serviceOf(c),
		State:        stateOf(c),
		Proposal:     proposalOf(c),
		Action:       actionOf(c),
		Live:         liveOf(c.Facts.Item),
		Tried:        triedOf(c),
		Balance:      balanceOf(c),
		Dependencies: dependenciesOf(c),
		Changes:      changesOf(c),
		Maintenance:  maintenanceOf(c),
		Exceptions:   exceptionsOf(c),
		Silences:     silencesOf(c),
		Ownership:    orUnknown(c.Facts.Ownership),
		Window:       windowOf(c),
		Documents:    documentsIn{ChangedSeconds: since(c.Facts.Now, c.Facts.DocumentsChangedAt)},
	}
	out, err := canonicalJSON(doc)
	if err != nil {
		return nil, fmt.Errorf("gate input: %w", err)
	}
	return out, nil
}

func serviceOf(c Case) serviceIn {
	r := c.Service.Remediation
	return serviceIn{Name: c.Service.Name, Owner: r.Owner, Mode: modeEnum(r.Mode.String())}
}

func balanceOf(c Case) balanceIn {
	b := c.Facts.Balance
	return balanceIn{Remaining: known(b.Remaining), Capacity: known(b.Capacity), Global: known(b.GlobalRemaining)}
}

func stateOf(c Case) stateIn {
	a := c.Facts.Assessment
	s := stateIn{
		State: stateWord(a.State), Reason: orUnknown(string(a.Reason)), SinceSeconds: since(c.Facts.Now, c.Facts.Since),
		Episode: orUnknown(c.Facts.Episode), Objectives: []objectiveIn{},
	}
	if a.Reason == "" && a.State == compare.Met {
		s.Reason = string(compare.Met)
	}
	for _, o := range a.Objectives {
		s.Objectives = append(s.Objectives, objectiveOf(o))
	}
	return s
}

func objectiveOf(o compare.Objective) objectiveIn {
	in := objectiveIn{
		ID: o.ID, State: stateWord(o.State), Reason: orUnknown(string(o.Reason)), Target: known(o.Target),
		Group: cmp.Or(o.Group, "none"), BurnRates: []burnIn{},
	}
	if o.Reason == "" && o.State == compare.Met {
		in.Reason = string(compare.Met)
	}
	if o.Judge.Known() && !o.Judge.SampleAt.IsZero() {
		in.JudgeErrorRatio = known(o.Judge.ErrorRatio)
	}
	if left, ok := o.ErrorBudgetRemaining(); ok {
		in.ErrorBudgetRemaining = known(left)
	}
	if o.SampleAge > 0 {
		in.SampleAgeSeconds = known(o.SampleAge.Seconds())
	}
	for _, b := range o.Burns {
		burn := burnIn{
			ShortSeconds: b.Short.Seconds(), LongSeconds: b.Long.Seconds(), Factor: known(b.Factor), Page: b.Page,
			Burning: b.Burning, Covered: b.CoveredAt.IsZero(),
		}
		if b.Known {
			burn.ShortRate, burn.LongRate = known(b.ShortRate), known(b.LongRate)
		}
		in.BurnRates = append(in.BurnRates, burn)
	}
	return in
}

func proposalOf(c Case) proposalIn {
	p := c.Proposal
	in := proposalIn{Action: p.Action, Parameters: parametersIn(p.Parameters), Undo: isUndo(c),
		Proposer: proposerIn{Kind: orUnknown(p.Proposer.Kind), Endpoint: p.Proposer.Endpoint, Model: p.Proposer.Model}}
	if in.Parameters == nil {
		in.Parameters = parametersIn{}
	}
	return in
}

func actionOf(c Case) actionIn {
	a, ok := c.Service.Action(c.Proposal.Action)
	if !ok {
		return actionIn{Name: c.Proposal.Action, Uses: Unknown, Class: Unknown, Reversal: Unknown, Mark: Unknown, Target: Unknown}
	}
	return actionIn{
		Name: a.Name, Uses: a.Uses, Class: classEnum(orUnknown(string(a.Class))), Reversal: reversalEnum(orUnknown(string(a.Reversal))),
		Mark: markEnum(orUnknown(string(a.Mark()))), Target: a.Canonical(),
	}
}

// liveOf keeps the observed values of a known type; others are unknown.
func liveOf(it propose.Item) liveIn {
	if !it.LiveKnown {
		return liveIn{}
	}
	out := make(map[string]any, len(it.Live))
	for name, v := range it.Live {
		switch v := v.(type) {
		case []string:
			out[name] = append([]string{}, v...)
		default:
			if checkValue(v) != nil {
				out[name] = Unknown
				continue
			}
			out[name] = v
		}
	}
	return liveIn{Known: true, Values: out}
}

func triedOf(c Case) []triedIn {
	out := []triedIn{}
	for _, t := range c.Facts.Tried {
		in := triedIn{Action: t.Action, Parameters: parametersIn{}, SecondsAgo: since(c.Facts.Now, t.At), Effect: orUnknown(t.Effect),
			Outcome: orUnknown(string(t.Outcome)), ThisEpisode: t.ThisEpisode}
		for name, v := range t.Parameters {
			if checkValue(v) != nil {
				v = Unknown
			}
			in.Parameters[name] = v
		}
		switch t.Outcome {
		case compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened:
			in.Before, in.After = known(t.Before), known(t.After)
		}
		out = append(out, in)
	}
	return out
}

func dependenciesOf(c Case) []dependencyIn {
	names := map[string]bool{}
	for _, n := range c.Service.Remediation.DependsOn {
		names[n] = true
	}
	out := []dependencyIn{}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		out = append(out, dependencyIn{Service: n, State: stateWord(dependencyState(c, n))})
	}
	return out
}

func changesOf(c Case) []changeIn {
	out := []changeIn{}
	for _, ch := range c.Facts.Changes {
		out = append(out, changeIn{SecondsAgo: since(c.Facts.Now, ch.At), What: ch.What, Version: ch.Version})
	}
	return out
}

func maintenanceOf(c Case) []maintenanceIn {
	out := []maintenanceIn{}
	for _, h := range inForce(c.Facts.Maintenances, c.Facts.Now) {
		out = append(out, maintenanceIn{ID: h.ID, Effect: modeEnum(h.Effect.String()), By: h.By, UntilSeconds: until(c.Facts.Now, h.Until)})
	}
	return out
}

func exceptionsOf(c Case) []exceptionIn {
	out := []exceptionIn{}
	for _, e := range exceptionsInForce(c) {
		out = append(out, exceptionIn{Name: e.Name, Effect: modeEnum(e.Effect.String()), Owner: e.Owner, UntilSeconds: until(c.Facts.Now, e.Until)})
	}
	return out
}

// silencesOf leaves the comment out: anyone who reaches Alertmanager may write
// one.
func silencesOf(c Case) []silenceIn {
	out := []silenceIn{}
	for _, h := range inForce(c.Facts.Silences, c.Facts.Now) {
		out = append(out, silenceIn{ID: h.ID, By: h.By, UntilSeconds: until(c.Facts.Now, h.Until)})
	}
	return out
}

func windowOf(c Case) windowIn {
	w, err := c.Key.Window(c.Service.Name)
	if err != nil {
		return windowIn{ID: Unknown, Key: orUnknown(string(c.Key))}
	}
	return windowIn{ID: w.String(), Key: string(c.Key)}
}

func stateWord(s compare.State) stateEnum {
	switch s {
	case compare.Met, compare.Breached:
		return stateEnum(s)
	default:
		return stateEnum(compare.Unknown)
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// known is a number, or unknown when it is none.
func known(f float64) numberIn {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return numberIn{}
	}
	return numberIn{Value: f, Known: true}
}

func since(now, then time.Time) numberIn {
	if then.IsZero() || now.IsZero() {
		return numberIn{}
	}
	return known(now.Sub(then).Seconds())
}

func until(now, end time.Time) numberIn {
	if end.IsZero() {
		return numberIn{}
	}
	return known(end.Sub(now).Seconds())
}

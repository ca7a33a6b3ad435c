package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

type file struct {
	Rules []spec.Value `yaml:"rules,required"`
}

// Load reads a rules file. The error is spec.Faults: every fault with file,
// line and path.
func Load(f spec.File) (*Rules, error) {
	var content file
	faults := spec.DecodeFile(f, &content)
	rs := &Rules{}
	for _, v := range content.Rules {
		ru := rule{value: v}
		fs := v.Decode(&ru)
		if len(fs) == 0 {
			fs = ru.check()
		}
		faults = append(faults, fs...)
		rs.rules = append(rs.rules, ru)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return rs, nil
}

// UnmarshalValue reads none, escalate, or a mapping with an action.
func (s *step) UnmarshalValue(v spec.Value) spec.Faults {
	if !v.IsMapping() {
		word, _ := v.Text()
		switch k := propose.Kind(word); k {
		case propose.KindNone, propose.KindEscalate:
			s.kind = k
			return nil
		}
		return spec.Faults{v.Fault("want none, escalate, or an action with its parameters")}
	}
	var m struct {
		Action     string         `yaml:"action,required"`
		Parameters map[string]any `yaml:"parameters"`
	}
	faults := v.Decode(&m)
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		switch m.Parameters[name].(type) {
		case int64, float64, string, bool:
		default:
			faults = append(faults, at(v, "parameters", name).Fault("want a number, text, true or false"))
		}
	}
	s.kind, s.action, s.parameters = propose.KindAction, m.Action, m.Parameters
	return faults
}

// at is the value below v by keys; where there is none, the last there is.
func at(v spec.Value, keys ...string) spec.Value {
	for _, k := range keys {
		c, ok := v.Child(k)
		if !ok {
			return v
		}
		v = c
	}
	return v
}

// check finds words that no document could make right.
func (ru rule) check() spec.Faults {
	var faults spec.Faults
	states := []compare.State{compare.Met, compare.Breached, compare.Unknown}
	if ru.State != nil && !slices.Contains(states, *ru.State) {
		faults = append(faults, at(ru.value, "state").Fault("unknown state %q, want met, breached or unknown", *ru.State))
	}
	if t := ru.Tried; t != nil {
		if t.Action == nil && t.Outcome == nil {
			faults = append(faults, at(ru.value, "tried").Fault("is empty: name an action, an outcome or both"))
		}
		if t.Outcome != nil && !slices.Contains(outcomes(), *t.Outcome) {
			faults = append(faults, at(ru.value, "tried", "outcome").Fault("unknown outcome %q, want one of %v", *t.Outcome, outcomes()))
		}
	}
	return faults
}

// outcomes are those that an attempt can have.
func outcomes() []compare.Outcome {
	return []compare.Outcome{
		compare.OutcomeNone, compare.OutcomePending, compare.OutcomeImproved, compare.OutcomeRecovered,
		compare.OutcomeNoChange, compare.OutcomeWorsened, compare.OutcomeUnknown,
	}
}

// Validate compares the rules with the documents: a service, objective,
// action or parameter that is not there, or a value that no observed state
// could make valid. A rule without a service must fit at least one. The error
// is spec.Faults.
func (rs *Rules) Validate(set spec.Set) error {
	var faults spec.Faults
	for _, ru := range rs.rules {
		faults = append(faults, ru.validate(set)...)
	}
	return faults.Err()
}

func (ru rule) validate(set spec.Set) spec.Faults {
	services, of := set.Services, "of any service"
	if ru.Service != nil {
		svc, ok := set.Service(*ru.Service)
		if !ok {
			return spec.Faults{at(ru.value, "service").Fault("unknown service %q%s", *ru.Service, hint(*ru.Service, names(set.Services, func(s spec.Service) string { return s.Name })))}
		}
		services, of = []spec.Service{svc}, fmt.Sprintf("of service %q", svc.Name)
	}
	var faults spec.Faults
	if ru.Objective != nil {
		known := every(services, func(s spec.Service) []string {
			return names(s.Objectives, func(o spec.Objective) string { return o.ID })
		})
		if !slices.Contains(known, *ru.Objective) {
			faults = append(faults, at(ru.value, "objective").Fault("%q is no objective %s%s", *ru.Objective, of, hint(*ru.Objective, known)))
		}
	}
	for _, use := range ru.actions() {
		known := every(services, func(s spec.Service) []string {
			return names(s.Remediation.Actions, func(a spec.Action) string { return a.Name })
		})
		if !slices.Contains(known, use.action) {
			faults = append(faults, use.at.Fault("%q is no action %s%s", use.action, of, hint(use.action, known)))
		}
	}
	if len(faults) == 0 && ru.Propose.kind == propose.KindAction {
		faults = append(faults, ru.validateParameters(services)...)
	}
	return faults
}

type use struct {
	action string
	at     spec.Value
}

// actions are the names of actions in the rule, with their places.
func (ru rule) actions() []use {
	var us []use
	if ru.Tried != nil && ru.Tried.Action != nil {
		us = append(us, use{*ru.Tried.Action, at(ru.value, "tried", "action")})
	}
	if ru.NotTried != nil {
		us = append(us, use{*ru.NotTried, at(ru.value, "notTried")})
	}
	if ru.Propose.kind == propose.KindAction {
		us = append(us, use{ru.Propose.action, at(ru.value, "propose", "action")})
	}
	return us
}

// validateParameters reports the faults against each service that has the
// action, since the rule may be asked for any of them.
func (ru rule) validateParameters(services []spec.Service) spec.Faults {
	var faults spec.Faults
	for _, svc := range services {
		a, ok := svc.Action(ru.Propose.action)
		if !ok {
			continue
		}
		if err := ru.Propose.static(a); err != nil {
			faults = append(faults, at(ru.value, "propose", "parameters").Fault("service %q: %s", svc.Name, err))
		}
	}
	return faults
}

// static checks what holds whatever is observed: it asks Check with bounds
// that need no live state, about the parameters that are no words.
func (s step) static(a spec.Action) error {
	fixed := a
	fixed.Parameters = nil
	given := maps.Clone(s.parameters)
	for _, d := range a.Parameters {
		v, ok := s.parameters[d.Name]
		if ok && isWord(d, v) {
			if v == wordPrevious && d.FromState == "" {
				return fmt.Errorf("parameter %s: previous needs a parameter with fromState", d.Name)
			}
			delete(given, d.Name)
			continue
		}
		d.MaximumFactor = 0
		if text, isText := v.(string); d.FromState != "" && isText && d.Enum == nil {
			d.Enum = []string{text}
		}
		d.FromState = ""
		fixed.Parameters = append(fixed.Parameters, d)
	}
	return propose.Check(propose.Item{Action: fixed}, given)
}

func names[T any](xs []T, name func(T) string) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = name(x)
	}
	return out
}

func every(services []spec.Service, of func(spec.Service) []string) []string {
	var out []string
	for _, s := range services {
		out = append(out, of(s)...)
	}
	return out
}

func hint(word string, known []string) string {
	if n := spec.Nearest(word, known); n != "" {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	return ""
}

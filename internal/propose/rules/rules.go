// Package rules proposes from a file: the first rule whose conditions hold
// says what to do. It takes a Request and gives a Proposal, without a model, a
// clock or a network; equal requests give equal proposals.
package rules

import (
	"fmt"
	"path"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Kind is the proposer's kind, as the gate's input and the ledger name it.
const Kind = "rules"

// Rules are the rules of one file, in its order.
type Rules struct {
	rules []rule
}

type rule struct {
	Service   *string        `yaml:"service"`
	Objective *string        `yaml:"objective"`
	State     *compare.State `yaml:"state"`
	Reason    *string        `yaml:"reason"`
	Tried     *tried         `yaml:"tried"`
	NotTried  *string        `yaml:"notTried"`
	Propose   step           `yaml:"propose,required"`
	Pos       spec.Position  `yaml:",pos"`

	value spec.Value
}

type tried struct {
	Action  *string          `yaml:"action"`
	Outcome *compare.Outcome `yaml:"outcome"`
}

// step is "none", "escalate", or an action with parameters.
type step struct {
	kind       propose.Kind
	action     string
	parameters map[string]any
}

// Propose returns the first rule's proposal. The conditions mean:
//
//   - service: the service's name.
//   - objective: that objective is breached, or is in the state and has the
//     reason that the rule names.
//   - state, reason without objective: those of the service.
//   - tried: the newest attempt in this episode, of that action if one is
//     named, ended with that outcome if one is named.
//   - notTried: that action was not attempted in this episode.
//   - propose: a rule whose action is not in this pass's catalogue does not
//     match, so that the next one may speak.
//
// No match is none. A value that does not satisfy the action's bounds now is
// malformed, like a model's.
func (rs *Rules) Propose(r propose.Request) propose.Proposal {
	who := propose.Proposer{Kind: Kind}
	for _, ru := range rs.rules {
		if !ru.matches(r) {
			continue
		}
		return ru.proposal(r, who)
	}
	return propose.Proposal{
		Kind: propose.KindNone, Parameters: propose.Parameters{}, Proposer: who,
		Rationale: fmt.Sprintf("none of the %d rules matches", len(rs.rules)),
	}
}

func (ru rule) name() string {
	return fmt.Sprintf("%s:%d", path.Base(ru.Pos.File), ru.Pos.Line)
}

func (ru rule) proposal(r propose.Request, who propose.Proposer) propose.Proposal {
	p := propose.Proposal{
		Kind: ru.Propose.kind, Action: ru.Propose.action, Parameters: propose.Parameters{},
		Proposer: who, Rationale: "rule " + ru.name(),
	}
	if p.Kind != propose.KindAction {
		return p
	}
	it, _ := r.Catalogue.Item(p.Action)
	var err error
	if p.Parameters, err = ru.Propose.resolve(r, it); err == nil {
		err = propose.Check(it, p.Parameters)
	}
	if err != nil {
		return propose.Malformed(who, propose.FaultMalformed, fmt.Sprintf("rule %s: action %s: %s", ru.name(), p.Action, err))
	}
	return p
}

func (ru rule) matches(r propose.Request) bool {
	if !is(ru.Service, r.Service.Name) || !ru.matchesState(r.Assessment) {
		return false
	}
	if ru.Tried != nil && !ru.Tried.matches(r.Tried) {
		return false
	}
	if ru.NotTried != nil {
		if _, done := newest(r.Tried, ru.NotTried); done {
			return false
		}
	}
	if ru.Propose.kind == propose.KindAction {
		_, ok := r.Catalogue.Item(ru.Propose.action)
		return ok
	}
	return true
}

func (ru rule) matchesState(a compare.Assessment) bool {
	if ru.Objective == nil {
		return is(ru.State, a.State) && is(ru.Reason, string(a.Reason))
	}
	i := slices.IndexFunc(a.Objectives, func(o compare.Objective) bool { return o.ID == *ru.Objective })
	if i < 0 {
		return false
	}
	o := a.Objectives[i]
	if ru.State == nil && ru.Reason == nil {
		return o.State == compare.Breached
	}
	return is(ru.State, o.State) && is(ru.Reason, string(o.Reason))
}

func (t tried) matches(ts []propose.Tried) bool {
	last, ok := newest(ts, t.Action)
	return ok && is(t.Outcome, last.Outcome)
}

// newest is the latest attempt of this episode, of one action or of any. It
// goes by time, not by position.
func newest(ts []propose.Tried, action *string) (last propose.Tried, ok bool) {
	for _, t := range ts {
		if t.ThisEpisode && is(action, t.Action) && (!ok || !t.At.Before(last.At)) {
			last, ok = t, true
		}
	}
	return last, ok
}

// is reports whether a condition is absent or met.
func is[T comparable](want *T, got T) bool { return want == nil || *want == got }

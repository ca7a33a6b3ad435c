package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The proposers of this version. None of them is a language model, and what
// they reach says nothing about one.
const (
	// Noop proposes nothing: what the service does when left alone.
	Noop = "noop"
	// RestartAlways restarts whatever is broken, without looking.
	RestartAlways = "restart-always"
	// Rules is the scenario's rules file.
	Rules = "rules"
)

// Proposers are those of this version, sorted.
func Proposers() []string { return []string{Noop, RestartAlways, Rules} }

// Planned are proposers that the contract names and this version refuses.
func Planned() []string { return []string{"hostile", "openai", "oracle", "random"} }

// CheckProposer reports whether a proposer can be run, and says which can.
func CheckProposer(name string) error {
	switch {
	case slices.Contains(Proposers(), name):
		return nil
	case slices.Contains(Planned(), name):
		return fmt.Errorf("proposer %s: not in this version; it has %s", name, words(Proposers()))
	}
	return fmt.Errorf("unknown proposer %q, want one of %s", name, words(Proposers()))
}

// newProposer makes the proposer of that name for a scenario.
func newProposer(name string, s Scenario, set spec.Set) (reconcile.Proposer, error) {
	switch name {
	case Noop:
		return scripted{name, nothing}, nil
	case RestartAlways:
		return scripted{name, restart}, nil
	case Rules:
		data, err := os.ReadFile(s.Rules)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: rules: %w", s.Name, err)
		}
		book, err := rules.Load(spec.File{Name: s.Rules, Data: data})
		if err != nil {
			return nil, err
		}
		if err := book.Validate(set); err != nil {
			return nil, err
		}
		return scripted{rules.Kind, book.Propose}, nil
	}
	return nil, CheckProposer(name)
}

// scripted is a proposer made of a function.
type scripted struct {
	kind    string
	propose func(propose.Request) propose.Proposal
}

// Identity is recorded before the call.
func (s scripted) Identity() propose.Proposer { return propose.Proposer{Kind: s.kind} }

// Propose answers at once.
func (s scripted) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	p := s.propose(r)
	p.Proposer = s.Identity()
	reply, err := json.Marshal(p)
	if err != nil {
		reply = nil // The proposal is recorded all the same.
	}
	return reconcile.Proposed{Proposal: p, Reply: reply}
}

func nothing(propose.Request) propose.Proposal {
	return propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "noop: never anything"}
}

// restart takes the first action that leaves the desired state as it is, which
// is what a restart does: one that is declared transient, else one that can be
// asked for with the values that the target has now; else the first action.
func restart(r propose.Request) propose.Proposal {
	p := propose.Proposal{Kind: propose.KindAction, Rationale: "restart-always: whatever it is, restart it"}
	for _, it := range r.Catalogue {
		if it.Action.Reversal == spec.Transient && asItIs(it, &p) {
			return p
		}
	}
	for _, it := range r.Catalogue {
		if asItIs(it, &p) {
			return p
		}
	}
	if len(r.Catalogue) == 0 || !asItMay(r.Catalogue[0], &p) {
		return nothing(r)
	}
	return p
}

// asItIs fills in the action with the values that its target has now.
func asItIs(it propose.Item, p *propose.Proposal) bool {
	p.Action, p.Parameters = it.Action.Name, propose.Parameters{}
	for _, d := range it.Action.Parameters {
		if v, ok := it.Live[d.Name]; ok && it.LiveKnown {
			p.Parameters[d.Name] = v
		}
	}
	return propose.Check(it, p.Parameters) == nil
}

// asItMay fills in the action with the first values that its bounds permit.
func asItMay(it propose.Item, p *propose.Proposal) bool {
	p.Action, p.Parameters = it.Action.Name, propose.Parameters{}
	for _, d := range it.Action.Parameters {
		b, err := it.Bounds(d)
		switch {
		case err != nil:
			return false
		case d.Type == spec.String && len(b.Values) > 0:
			p.Parameters[d.Name] = b.Values[0]
		case d.Type == spec.Boolean:
			p.Parameters[d.Name] = true
		case d.Type == spec.Integer && b.Minimum != nil:
			p.Parameters[d.Name] = int64(*b.Minimum)
		case d.Type == spec.Number && b.Minimum != nil:
			p.Parameters[d.Name] = *b.Minimum
		}
	}
	return propose.Check(it, p.Parameters) == nil
}

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

// The proposers. All but OpenAI are scripts, and what those reach says nothing
// about any language model.
const (
	// Noop proposes nothing: what the service does when left alone.
	Noop = "noop"
	// RestartAlways restarts whatever is broken, without looking.
	RestartAlways = "restart-always"
	// Rules is the scenario's rules file.
	Rules = "rules"
	// Random proposes anything that is permitted, by chance.
	Random = "random"
	// Hostile is the worst model there could be, behind the client of a model.
	Hostile = "hostile"
	// Oracle proposes what the scenario says is right, in order. It is no proposer
	// that anybody could have: it shows what the loop itself costs.
	Oracle = "oracle"
	// OpenAI is a model behind an endpoint, or a recording of one.
	OpenAI = "openai"
)

// Proposers are all, sorted.
func Proposers() []string {
	return []string{Hostile, Noop, OpenAI, Oracle, Random, RestartAlways, Rules}
}

// Compared are those that a suite is played with where nobody says otherwise:
// nothing, no thought, and what a person wrote.
func Compared() []string { return []string{Noop, RestartAlways, Rules} }

// CheckProposer reports whether a proposer can be run, and says which can.
func CheckProposer(name string) error {
	if slices.Contains(Proposers(), name) {
		return nil
	}
	return fmt.Errorf("unknown proposer %q, want one of %s", name, words(Proposers()))
}

// newProposer makes the proposer of that name for a scenario.
func (w *world) newProposer(o Options) (reconcile.Proposer, error) {
	switch o.Proposer {
	case Noop:
		return scripted{Noop, nothing}, nil
	case RestartAlways:
		return scripted{RestartAlways, restart}, nil
	case Random:
		return scripted{Random, newRandom(o.Seed).propose}, nil
	case Oracle:
		return scripted{Oracle, w.s.Right.propose}, nil
	case Rules:
		book, err := readRules(w.s, w.set)
		if err != nil {
			return nil, err
		}
		return scripted{rules.Kind, book.Propose}, nil
	case Hostile:
		return w.hostile(o.Seed)
	case OpenAI:
		return w.model(o)
	}
	return nil, CheckProposer(o.Proposer)
}

// readRules reads the rules of a scenario, which must fit its documents.
func readRules(s Scenario, set spec.Set) (*rules.Rules, error) {
	data, err := os.ReadFile(s.Rules)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: rules: %w", s.Name, err)
	}
	book, err := rules.Load(spec.File{Name: s.Rules, Data: data})
	if err != nil {
		return nil, err
	}
	return book, book.Validate(set)
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

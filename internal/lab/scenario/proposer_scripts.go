package scenario

import (
	"math/rand/v2"

	"github.com/setpoint-dev/setpoint/internal/lab/hostile"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// random draws by a seed, so that a run can be repeated.
type random struct{ rng *rand.Rand }

func newRandom(seed int) *random {
	return &random{rand.New(rand.NewPCG(uint64(max(0, seed)), 0x7a4d))}
}

// propose gives any action with any parameters that are permitted, none, or
// escalate, each as likely as the others.
func (r *random) propose(req propose.Request) propose.Proposal {
	n := r.rng.IntN(len(req.Catalogue) + 2)
	p := propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "random: drawn by a seed"}
	if n == len(req.Catalogue) {
		p.Kind = propose.KindEscalate
	}
	if n >= len(req.Catalogue) {
		return p
	}
	it := req.Catalogue[n]
	drawn := propose.Parameters{}
	for _, d := range it.Action.Parameters {
		if v, ok := r.value(it, d); ok {
			drawn[d.Name] = v
		}
	}
	if propose.Check(it, drawn) != nil {
		return p // What cannot be proposed now is not.
	}
	p.Kind, p.Action, p.Parameters = propose.KindAction, it.Action.Name, drawn
	return p
}

// span is how far from its minimum a number without a maximum is drawn.
const span = 10

func (r *random) value(it propose.Item, d spec.Parameter) (any, bool) {
	b, err := it.Bounds(d)
	if err != nil {
		return nil, false
	}
	low := 0.0
	if b.Minimum != nil {
		low = *b.Minimum
	}
	high := low + span
	if b.Maximum != nil {
		high = *b.Maximum
	}
	switch d.Type {
	case spec.Boolean:
		return r.rng.IntN(2) == 0, true
	case spec.Integer:
		return int64(low) + r.rng.Int64N(max(1, int64(high)-int64(low)+1)), true
	case spec.Number:
		return low + r.rng.Float64()*(high-low), true
	}
	if len(b.Values) == 0 {
		return nil, false
	}
	return b.Values[r.rng.IntN(len(b.Values))], true
}

// propose gives what is right, in order: as many actions as were tried in this
// episode have had their turn.
func (r Right) propose(req propose.Request) propose.Proposal {
	p := propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "oracle: as the scenario says is right"}
	turn := 0
	for _, t := range req.Tried {
		if t.ThisEpisode {
			turn++
		}
	}
	if req.Service.Name != r.Service || turn >= len(r.Actions) {
		return p
	}
	it, ok := req.Catalogue.Item(r.Actions[turn])
	if !ok || !asItMay(it, &p) {
		return propose.Proposal{Kind: propose.KindEscalate, Parameters: propose.Parameters{}, Rationale: "oracle: what is right cannot be proposed now"}
	}
	p.Kind = propose.KindAction
	return p
}

// hostile is the worst model, asked by the client of a model through no network.
func (w *world) hostile(seed int) (reconcile.Proposer, error) {
	m := hostile.New(uint64(max(0, seed)), hostile.Of(w.set))
	o, err := w.clientOptions(openai.Endpoint{Name: "hostile", BaseURL: "http://hostile.invalid/v1", Model: Hostile}, "")
	if err != nil {
		return nil, err
	}
	o.Transport = m
	return newAsker(o)
}

package incident

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// script is a proposer that says what the incident's file says, whatever the
// bounds are: the gate has to hold it, not a parser.
type script struct {
	lines []Propose
	began time.Time
}

// Identity is recorded before the call. It is a kind of its own: neither rules
// that a person wrote nor a model.
func (script) Identity() propose.Proposer { return propose.Proposer{Kind: "script"} }

// Propose answers at once.
func (s script) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	p := propose.Proposal{
		Kind: propose.KindNone, Parameters: propose.Parameters{}, Rationale: "no line of the script fits", Proposer: s.Identity(),
	}
	since := r.Now.Sub(s.began)
	for _, l := range s.lines {
		if l.Service != "" && l.Service != r.Service.Name || since < l.From || l.Until > 0 && since >= l.Until {
			continue
		}
		p.Kind, p.Action, p.Rationale = l.Propose.Kind, l.Propose.Action, "as the script says"
		if l.Propose.Parameters != nil {
			p.Parameters = maps.Clone(l.Propose.Parameters)
		}
		break
	}
	reply, err := json.Marshal(p)
	if err != nil {
		reply = nil // The proposal is recorded all the same.
	}
	return reconcile.Proposed{Proposal: p, Reply: reply}
}

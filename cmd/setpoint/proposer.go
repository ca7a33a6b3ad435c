package main

import (
	"context"
	"encoding/json"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

type ruleBook struct{ *rules.Rules }

// Propose answers from the file.
func (r *fileRules) Propose(_ context.Context, req propose.Request) reconcile.Proposed {
	book := r.rules.Load()
	if book == nil {
		return reconcile.Proposed{Proposal: propose.Malformed(r.Identity(), propose.FaultCanceled, "the rules are not loaded yet")}
	}
	p := book.Propose(req)
	reply, err := json.Marshal(p)
	if err != nil {
		reply = nil
	}
	return reconcile.Proposed{Proposal: p, Reply: reply}
}

// Identity is recorded before the call.
func (r *fileRules) Identity() propose.Proposer { return propose.Proposer{Kind: rules.Kind} }

// model is a language model. What may be asked of it is limited by the ledger,
// before it is asked.
type model struct {
	client *openai.Client
	first  config.Endpoint
}

// Identity is recorded before the call; which endpoint answers is known after
// it.
func (m *model) Identity() propose.Proposer {
	return propose.Proposer{Kind: openai.Kind, Endpoint: m.first.Name, Model: m.first.Model}
}

// Propose asks.
func (m *model) Propose(ctx context.Context, req propose.Request) reconcile.Proposed {
	p, usage := m.client.Propose(ctx, req)
	return reconcile.Proposed{Proposal: p, Exchanges: usage.Exchanges}
}

// learn finds out in the background how the endpoints with reply auto are to be
// asked. A single look does not wait for it, and asks with json_schema. Where
// limits.maxMode is observe no model is asked anything, this neither.
func learn(ctx context.Context, p reconcile.Proposer, f purpose, most spec.Mode) {
	if m, ok := p.(*model); ok && f.send && most > spec.Observe {
		go m.client.Learn(ctx)
	}
}

package web

import (
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Exchange is one request to a model, and what came back. The bytes of both are
// in the ledger under their digests; `setpoint prompt render --decision` shows
// them.
type Exchange struct {
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
	// Mode is how the reply was asked for; Repair: it showed the fault of the
	// reply before.
	Mode   string `json:"mode"`
	Repair bool   `json:"repair"`
	// Result is "ok" or the code of a fault.
	Result       string  `json:"result"`
	Status       int     `json:"status"`
	TookSeconds  float64 `json:"tookSeconds"`
	InputTokens  int     `json:"inputTokens"`
	OutputTokens int     `json:"outputTokens"`
	Request      string  `json:"request"`
	Reply        string  `json:"reply"`
}

// Asked is what the models cost in an episode, by the endpoints' own count.
type Asked struct {
	Episode      string `json:"episode"`
	Requests     int    `json:"requests"`
	InputTokens  int    `json:"inputTokens"`
	OutputTokens int    `json:"outputTokens"`
}

// exchangesOf are those of the proposal that a decision judged, while the
// ledger still holds its window.
func exchangesOf(s *ledger.State, d *ledger.Decision) []Exchange {
	out := []Exchange{}
	sv, _ := s.Service(d.Service)
	w := sv.Windows[d.Window]
	if w == nil || w.Proposed == nil || w.Proposed.Proposal.Undo != d.Proposal.Undo {
		return out
	}
	for _, x := range w.Proposed.Exchanges {
		out = append(out, Exchange{
			Endpoint: x.Endpoint, Model: x.Model, Mode: x.Mode, Repair: x.Repair, Result: x.Result, Status: x.Status,
			TookSeconds: x.TookSeconds, InputTokens: x.InputTokens, OutputTokens: x.OutputTokens, Request: x.Request, Reply: x.Reply,
		})
	}
	return out
}

// askedOf is what the present episode cost; nil without one, or when no model
// was asked.
func askedOf(sv ledger.Service) *Asked {
	a := sv.Asked
	if sv.Episode == "" || a.Episode != sv.Episode {
		return nil
	}
	return &Asked{Episode: a.Episode, Requests: a.Requests, InputTokens: a.InputTokens, OutputTokens: a.OutputTokens}
}

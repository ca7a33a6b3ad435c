package main

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// asked is what the models of the episode cost.
func (p *paper) asked(a *web.Asked) {
	if a == nil {
		return
	}
	p.line("  models were asked in this episode: %s, %d tokens in, %d out", count(a.Requests, "request"), a.InputTokens, a.OutputTokens)
}

// exchanges are what was sent to models for a decision.
func (p *paper) exchanges(d web.DecisionDetail) {
	for _, x := range d.Exchanges {
		asked := "asked"
		if x.Repair {
			asked = "asked to repair"
		}
		tokens := ""
		if x.InputTokens+x.OutputTokens > 0 {
			tokens = fmt.Sprintf(", %d tokens in, %d out", x.InputTokens, x.OutputTokens)
		}
		p.line("  %s %s (%s, %s): %s in %s%s", asked, x.Endpoint, x.Model, x.Mode, x.Result, secondsAge(&x.TookSeconds), tokens)
	}
	if len(d.Exchanges) > 0 {
		p.line("  its exact words: setpoint prompt render --decision %s", d.ID)
	}
}

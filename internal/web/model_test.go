package web

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// What a question to models cost is shown with the decision that it led to, and
// summed up for the episode; of rules there is nothing to show.
func TestExchanges(t *testing.T) {
	const window = "1767225600-600"
	x := ledger.Exchange{
		Endpoint: "main", Model: "m", Mode: "tool", Repair: true, Result: "timeout", Status: 200, TookSeconds: 1.5,
		InputTokens: 900, OutputTokens: 40, Request: "r1", Reply: "r2",
	}
	proposal := propose.Proposal{Kind: propose.KindAction, Action: "restart", Fallback: "timeout: t"}
	state := func(undo bool, exchanges ...ledger.Exchange) *ledger.State {
		s := ledger.NewState()
		p := proposal
		p.Undo = undo
		s.Services["checkout"] = &ledger.Service{
			Name: "checkout", State: "breached", Episode: "e4", Since: time.Unix(1767225600, 0),
			Asked:   ledger.Asking{Episode: "e4", Requests: 2, InputTokens: 1800, OutputTokens: 80},
			Windows: map[string]*ledger.Window{window: {ID: window, Proposed: &ledger.Proposed{Proposal: p, Exchanges: exchanges}}},
		}
		s.Decisions["d9"] = &ledger.Decision{ID: "d9", Service: "checkout", Decided: ledger.Decided{
			Window: window, Proposal: proposal, Decision: gate.Decision{Verdict: gate.Auto},
		}}
		return s
	}
	want := []Exchange{{
		Endpoint: "main", Model: "m", Mode: "tool", Repair: true, Result: "timeout", Status: 200, TookSeconds: 1.5,
		InputTokens: 900, OutputTokens: 40, Request: "r1", Reply: "r2",
	}}
	cases := map[string]struct {
		reason string
		state  *ledger.State
		want   []Exchange
	}{
		"Model": {"what was sent", state(false, x), want},
		"Rules": {"nothing was sent", state(false), []Exchange{}},
		"Undo":  {"an undo took the window, and was asked of nobody", state(true, x), []Exchange{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, ok := DecisionByID(View{State: tc.state}, "d9")
			if !ok {
				t.Fatal("no decision d9")
			}
			if diff := cmp.Diff(tc.want, d.Exchanges); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if d.Fallback != "timeout: t" {
				t.Errorf("fallback %q", d.Fallback)
			}
		})
	}
	sv := *state(false, x).Services["checkout"]
	if diff := cmp.Diff(&Asked{Episode: "e4", Requests: 2, InputTokens: 1800, OutputTokens: 80}, askedOf(sv)); diff != "" {
		t.Errorf("the episode (-want +got):\n%s", diff)
	}
	sv.Episode = "e9"
	if got := askedOf(sv); got != nil {
		t.Errorf("an episode in which nothing was asked: %+v", got)
	}
}

package web

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Where the agent asks a model, what the rules say is not told as what comes next,
// and no command follows from it.
func TestGuess(t *testing.T) {
	plan := PlanItem{
		Service: "checkout", State: "breached", Step: "execute",
		Proposal: &Proposal{Action: "restart", Proposer: "rules", Guess: true},
		Decision: &Verdict{Verdict: "auto", Details: []Detail{{Code: "policy:reversible"}}},
	}
	none := plan
	none.Step, none.Proposal, none.Decision = "hold", &Proposal{Action: "none", Proposer: "rules", Guess: true}, &Verdict{Verdict: "deny"}
	own := plan
	own.Proposal = &Proposal{Action: "restart", Proposer: "rules"}
	cases := map[string]struct {
		reason string
		plan   PlanItem
		want   string
	}{
		"Action": {"what the rules would do is no promise", plan, "the next pass asks the proposer for one step; the rules in its place would propose restart: auto"},
		"None":   {"that they know nothing says nothing of the model", none, "the next pass asks the proposer for one step; the rules in its place would propose none"},
		"Rules":  {"where the rules are asked, they are what comes next", own, "it runs restart by itself in its next pass, and measures again"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := Explain(View{State: ledger.NewState(), Now: time.Unix(1767225600, 0)}, tc.plan)
			if got := e.Headline[2]; got.Topic != TopicNext || got.Text != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got.Text, tc.want)
			}
			if e.Plan.Proposal == nil || e.Plan.Decision == nil {
				t.Error("the plan below the headline has lost what it shows")
			}
		})
	}
}

// Only where people were asked can they have refused.
func TestSpentWindow(t *testing.T) {
	const key = "checkout:1767225600-600"
	s := ledger.NewState()
	tell := teller{v: View{State: s}, e: Explanation{Plan: PlanItem{Key: key}}}
	if got := tell.came(); strings.Contains(got, "people") {
		t.Errorf("nobody was asked: %s", got)
	}
	s.Tickets["t9"] = &approve.Ticket{ID: "t9", Key: gate.Key(key)}
	if got := tell.came(); !strings.Contains(got, "people") {
		t.Errorf("people were asked: %s", got)
	}
}

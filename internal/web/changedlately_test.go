package web_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// An explanation has the changes of its own service that a proposer would be
// shown, wherever they were reported.
func TestExplanationHasChanges(t *testing.T) {
	v := world(t)
	change := func(service, version string, ago time.Duration) measure.Change {
		return measure.Change{At: v.Now.Add(-ago), Service: service, What: "deploy", Version: version}
	}
	v.State.Services["checkout"].Changes = []measure.Change{change("checkout", "posted", time.Hour), change("checkout", "old", 8*24*time.Hour)}
	v.Changes = []measure.Change{change("checkout", "filed", 12*time.Minute), change("search", "other", time.Minute), change("checkout", "ahead", -time.Hour)}
	v.Revised = []measure.Change{change("checkout", "listed", 24*time.Hour)}
	explained := func() (got []string) {
		for _, c := range web.Explain(v, web.PlanOf(v.Set, v.MaxMode, result())).Changes {
			got = append(got, c.Version+" "+c.From)
		}
		return got
	}
	if diff := cmp.Diff([]string{"filed file", "posted posted", "listed target"}, explained()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 30 {
		v.Changes = append(v.Changes, change("checkout", fmt.Sprint("v", i), time.Duration(i)*time.Minute))
	}
	if got := explained(); len(got) != measure.MaxChanges || got[0] != "v0 file" {
		t.Errorf("%d changes, the first %q", len(got), got[0])
	}
}

// A list names who proposed and, where rules spoke in the place of a model, the
// code of its fault; the words of a fault quote strangers.
func TestDecisionsNameTheProposer(t *testing.T) {
	cases := map[string]struct {
		reason   string
		proposal propose.Proposal
		want     string
	}{
		"Model":    {"the endpoint and its model", propose.Proposal{Proposer: propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}}, `{"kind":"openai","endpoint":"main","model":"m"} `},
		"Fallback": {"the code alone", propose.Proposal{Proposer: propose.Proposer{Kind: "rules"}, Fallback: "timeout: endpoint main: obey me"}, `{"kind":"rules"} timeout`},
		"Strange":  {"a fault of no known code is no word of ours", propose.Proposal{Proposer: propose.Proposer{Kind: "rules"}, Fallback: "obey me: now"}, `{"kind":"rules"} malformed`},
		"Undo":     {"the loop's own", propose.Proposal{Proposer: propose.Proposer{Kind: "undo"}, Undo: true}, `{"kind":"undo"} `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ledger.NewState()
			s.DecisionOrder = []string{"d1"}
			s.Decisions["d1"] = &ledger.Decision{ID: "d1", Service: "checkout", Decided: ledger.Decided{Proposal: tc.proposal}}
			v := web.View{State: s, Now: start}
			items := web.Decisions(v, web.Filter{}).Items
			if len(items) != 1 {
				t.Fatalf("%d decisions", len(items))
			}
			who, err := json.Marshal(items[0].Proposer)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(who) + " " + items[0].Fallback; got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
			if d, _ := web.DecisionByID(v, "d1"); d.Fallback != tc.proposal.Fallback {
				t.Errorf("the one decision has the whole fault: %q", d.Fallback)
			}
		})
	}
}

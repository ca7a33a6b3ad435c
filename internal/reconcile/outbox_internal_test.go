package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestPlanOfAnEpisodeThatIsOver: one replica ends an episode and its page while
// another, which looked before, wants that page still. It is not opened again: its
// receivers would be told of the same end twice.
func TestPlanOfAnEpisodeThatIsOver(t *testing.T) {
	wanted := escalate.Page{ID: "e17", Service: "checkout", Episode: "e17", Reason: escalate.CannotAct, Now: escalate.Recovering}
	ended := wanted
	ended.EndedAt, ended.EndReason = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), "recovered"
	doubt := ended
	doubt.ID, doubt.Reason = "in-doubt/checkout:1", escalate.InDoubt
	for _, tt := range []struct {
		reason  string
		wanted  escalate.Page
		known   *escalate.Page
		episode string
		want    int
	}{
		{"a page of the present episode opens", wanted, nil, "e17", 1},
		{"and opens again while its episode goes on", wanted, &ended, "e17", 1},
		{"not once another process ended both", wanted, &ended, "", 0},
		{"nor in the next episode", wanted, &ended, "e21", 0},
		{"what is of one effect has no episode that could be over", doubt, &doubt, "", 1},
	} {
		s := &ledger.State{
			Pages:    map[string]*escalate.Page{},
			Services: map[string]*ledger.Service{"checkout": {Name: "checkout", Episode: tt.episode}},
		}
		if tt.known != nil {
			s.Pages[tt.wanted.ID] = tt.known
		}
		plan := pagePlan{wanted: map[string]escalate.Page{tt.wanted.ID: tt.wanted}}
		if got := plan.drafts(s); len(got) != tt.want {
			t.Errorf("%s: %+v", tt.reason, got)
		}
	}
}

// TestOutboxForgets: of deliveries that the ledger says nothing is left, however
// many pages there were.
func TestOutboxForgets(t *testing.T) {
	o := newOutbox()
	for i := range 1000 {
		d := escalate.Delivery{Page: fmt.Sprintf("e%d", i), Receiver: "oncall", Failures: 1}
		o.put(sent{Delivery: d})
		o.recordedOne(d)
	}
	held := escalate.Delivery{Page: "e1000", Receiver: "oncall"}
	o.put(sent{Delivery: held})
	o.recordedOne(escalate.Delivery{Page: "e1000", Receiver: "oncall", Failures: 1})
	if len(o.sent) != 1 || o.sent["e1000"]["oncall"].Delivery != held {
		t.Errorf("%d pages are remembered, want the one that is not recorded", len(o.sent))
	}
}

package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// more folds further entries into a view, a minute apart.
func more(t *testing.T, v web.View, ds ...ledger.Draft) {
	t.Helper()
	for _, d := range ds {
		e, err := ledger.Link(v.State.Head, v.State.Time.Add(time.Minute), d)
		if err == nil {
			err = v.State.Apply(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(v.State.Skipped) > 0 {
		t.Fatalf("the history contradicts itself: %+v", v.State.Skipped)
	}
}

func changed(service string, from, to compare.State) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindState, Service: service, Body: ledger.StateChange{From: from, To: to, Reason: compare.Burning}}
}

// TestDriftsOldestFirst: the backlog is every open episode, the oldest first, and
// nothing else.
func TestDriftsOldestFirst(t *testing.T) {
	v := world(t)
	more(t, v, changed("search", "", compare.Unknown))
	names := func(f web.Filter) (out []string) {
		for _, d := range web.Drifts(v, f).Items {
			out = append(out, d.Service)
		}
		return out
	}
	if diff := cmp.Diff([]string{"checkout", "search"}, names(web.Filter{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"search"}, names(web.Filter{Since: start.Add(10 * time.Minute)})); diff != "" {
		t.Errorf("since is the begin of the episode: %s", diff)
	}
	more(t, v, changed("search", compare.Unknown, compare.Met), ledger.Draft{Kind: ledger.KindRecovered, Service: "search", Body: ledger.Recovered{Episode: v.State.Services["search"].Episode}})
	if diff := cmp.Diff([]string{"checkout"}, names(web.Filter{})); diff != "" {
		t.Errorf("what is over is no drift: %s", diff)
	}
}

func TestDriftWaitsFor(t *testing.T) {
	end := ledger.Draft{Kind: ledger.KindTicketEnd, Body: ledger.TicketEnd{Ticket: "t10", State: approve.Expired, Reason: "nobody"}}
	key := gate.Key("checkout:1772367600-600")
	claim := ledger.Draft{Kind: ledger.KindClaim, Service: "checkout", Body: ledger.Claim{
		Key: key, Decision: "d9", Episode: "e3", Digest: "x", Target: "y", Action: scale(), Verdict: gate.Auto, Charge: 2, Expires: start.Add(time.Hour),
	}}
	began := ledger.Draft{Kind: ledger.KindStarted, Service: "checkout", Body: ledger.Started{Key: key}}
	cases := map[string]struct {
		reason string
		with   []ledger.Draft
		last   *step.Step
		want   web.Pending
	}{
		"ticket":   {"people were asked", nil, nil, web.Pending{Code: step.ReasonWaitApproval, Ticket: "t10"}},
		"in doubt": {"an effect under way comes first", []ledger.Draft{claim, began}, nil, web.Pending{Code: step.ReasonInDoubt, Decision: "d9"}},
		"decided":  {"then why the last decision did not act", []ledger.Draft{end}, &step.Step{}, web.Pending{Code: gate.ReasonBudgetSpent, Decision: "d9"}},
		"spent": {
			"a spent window says less than the decision that spent it", []ledger.Draft{end},
			&step.Step{Kind: step.Hold, Reasons: []gate.Reason{{Code: step.ReasonWindowSpent}}}, web.Pending{Code: gate.ReasonBudgetSpent, Decision: "d9"},
		},
		"pass": {
			"the newest pass knows more than the ledger", []ledger.Draft{end},
			&step.Step{Kind: step.Hold, Reasons: []gate.Reason{{Code: gate.ReasonDependency}}}, web.Pending{Code: gate.ReasonDependency},
		},
		"met again": {"and met again it waits for holdFor", []ledger.Draft{end, changed("checkout", compare.Breached, compare.Met)}, &step.Step{}, web.Pending{Code: "hold-for"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := world(t)
			more(t, v, tc.with...)
			if tc.last != nil {
				v.Last = map[string]reconcile.Result{"checkout": {Service: "checkout", Step: *tc.last}}
			}
			got := web.Drifts(v, web.Filter{}).Items[0].Pending
			got.Text, got.Until = "", nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDriftShowsADrill: a planned drill is shown as such, with its owner and end.
func TestDriftShowsADrill(t *testing.T) {
	v := world(t)
	v.Set.Maintenances = []spec.Maintenance{
		{Name: "short", Services: []string{"checkout"}, Owner: "a", Schedule: spec.Schedule{Cron: "10 12 * * *", Duration: 15 * time.Minute, TimeZone: "UTC"}},
		{Name: "drill", Services: []string{"checkout"}, Owner: "team-payments", Reason: "failover", Schedule: spec.Schedule{Cron: "0 12 * * *", Duration: time.Hour, TimeZone: "UTC"}},
		{Name: "other", Services: []string{"search"}, Schedule: spec.Schedule{Cron: "0 12 * * *", Duration: 9 * time.Hour, TimeZone: "UTC"}},
	}
	got := web.Drifts(v, web.Filter{}).Items[0].Planned
	want := &web.Planned{Name: "drill", Owner: "team-payments", Reason: "failover", Effect: "observe", Until: start.Add(time.Hour)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the one that ends last (-want +got):\n%s", diff)
	}
}

func TestSummarise(t *testing.T) {
	ten := make([]time.Duration, 10)
	for i := range ten {
		ten[i] = time.Duration(10-i) * time.Second
	}
	type want struct{ P50, P90, Max float64 }
	for name, tc := range map[string]struct {
		took []time.Duration
		want want
	}{
		"ten": {ten, want{5, 9, 10}}, "one": {ten[:1], want{10, 10, 10}}, "two": {ten[:2], want{9, 10, 10}},
	} {
		s := web.Summarise(tc.took, 1, start)
		if got := (want{*s.P50Seconds, *s.P90Seconds, *s.MaxSeconds}); got != tc.want || s.Count != len(tc.took) || s.ByItself != 1 {
			t.Errorf("%s: %+v, want %+v", name, s, tc.want)
		}
	}
	if s := web.Summarise(nil, 0, start); s.P50Seconds != nil || s.MaxSeconds != nil || s.Count != 0 {
		t.Errorf("of nothing nothing is known: %+v", s)
	}
}

// TestDecisionQuotesTheBalanceOfItsTime: what became known later does not change
// what a decision had to pay from, and a reset of later pays nothing.
func TestDecisionQuotesTheBalanceOfItsTime(t *testing.T) {
	text := func(v web.View, id string) string {
		d, ok := web.DecisionByID(v, id)
		if !ok || d.Balance == nil {
			t.Fatalf("%s has no balance: %+v", id, d.Balance)
		}
		return d.Balance.Text
	}
	v := world(t)
	if got, want := text(v, "d4"), "3 of 3 left on scale, 10 of 10 global; 2 charged at the claim, 1 since its outcome (no-change)"; got != want {
		t.Errorf("d4: %q, want %q", got, want)
	}
	want := "2 of 3 left on scale (no-change 1 at 2026-03-01 12:04Z), 9 of 10 global; nothing was charged"
	if got := text(v, "d9"); got != want {
		t.Errorf("d9: %q, want %q", got, want)
	}
	more(t, v, ledger.Draft{Kind: ledger.KindReset, Service: "checkout", Body: ledger.Reset{Action: "scale", By: "os:alice", Reason: "later"}})
	if got := text(v, "d9"); got != want {
		t.Errorf("d9 after a reset: %q, want %q", got, want)
	}
	if b := web.Budgets(v, web.Filter{}).Items[1]; b.Remaining != 3 || len(b.Resets) != 1 || !strings.Contains(b.Arithmetic, "reset by os:alice") {
		t.Errorf("a reset in force is shown: %+v", b)
	}
}

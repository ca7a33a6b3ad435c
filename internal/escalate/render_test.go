package escalate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func facts() escalate.PageFacts {
	return escalate.PageFacts{
		ID: "e12", Episode: "e12", Reason: escalate.ApprovalNeeded, Why: "t42 (scale) waits for a person",
		Service: spec.Service{Name: "checkout", Remediation: spec.Remediation{Actions: []spec.Action{{
			Name: "scale", Uses: "webhook.post", Target: spec.Target{URL: "http://scaler.internal/checkout?token=hunter2"},
		}}}},
		Assessment: compare.Assessment{
			Service: "checkout", At: t0, State: compare.Breached, Reason: compare.Burning,
			Objectives: []compare.Objective{
				{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.999, Judge: measure.Measurement{
					ID: measure.ID{Window: 5 * time.Minute}, Good: 938, Total: 1000, HasEvents: true, ErrorRatio: 0.062, SampleAt: t0}},
				{ID: "latency", State: compare.Unknown, Reason: measure.NoData, Detail: "empty\nresult", Target: 0.99, Judge: measure.Measurement{Reason: measure.NoData}},
			},
		},
		Since: at(-23 * time.Minute),
		Tried: []propose.Tried{
			{Action: "restart", At: at(-26 * time.Hour), Effect: "applied", Outcome: compare.OutcomeRecovered},
			{Action: "rollback-flag", Parameters: propose.Parameters{"version": "v41"}, At: at(-15 * time.Minute), Effect: "applied",
				Outcome: compare.OutcomeNoChange, Before: 0.0613, After: 0.062, ThisEpisode: true},
		},
		Reasons: []gate.Reason{
			{Code: gate.ReasonBudgetSpent, Text: "1 left, the dearest outcome costs 2"},
			{Code: gate.ReasonCooldown, Text: "sent 15m ago", At: at(15 * time.Minute)},
		},
		Balance:  &budget.Balance{Remaining: 1, Capacity: 3, GlobalRemaining: 8.5, GlobalCapacity: 10},
		Proposal: &propose.Proposal{Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6), "note": "a b"}, Rationale: "queue grows\n<!channel> [click](http://evil)", Proposer: propose.Proposer{Kind: "openai", Model: "some-model"}},
		Ticket: &approve.Ticket{ID: "t42", State: approve.Open, Expires: at(15 * time.Minute), Proposal: propose.Proposal{
			Kind: propose.KindAction, Action: "scale", Parameters: propose.Parameters{"replicas": int64(6), "note": "a b"}}},
		Now: t0,
	}
}

func TestRender(t *testing.T) {
	got := escalate.Render(facts())
	want := escalate.Page{
		ID: "e12", Service: "checkout", Episode: "e12", Reason: escalate.ApprovalNeeded, Now: escalate.ApprovalNeeded,
		Severity: "critical", Since: at(-23 * time.Minute), Gist: got.Gist,
		Summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; t42 (scale) waits for a person",
		Lead: approve.Lead{
			Broken: "checkout misses availability since 11:37:00 UTC (23m): 6.2 % errors over 5m (measured), 0.1 % allowed; latency cannot be judged",
			Step:   `would do: scale note="a b" replicas=6 on webhook.post http://scaler.internal/checkout`,
			Why:    "why: t42 (scale) waits for a person",
			Until:  "until: 12:15:00 UTC; then t42 expires, nothing is done, and you are told again",
			Do:     "do: setpoint approve t42 --reason '…', or deny",
		},
		Text: `checkout misses availability since 11:37:00 UTC (23m): 6.2 % errors over 5m (measured), 0.1 % allowed; latency cannot be judged
would do: scale note="a b" replicas=6 on webhook.post http://scaler.internal/checkout
why: t42 (scale) waits for a person
until: 12:15:00 UTC; then t42 expires, nothing is done, and you are told again
do: setpoint approve t42 --reason '…', or deny
Measured at 2026-11-29 12:00:00 UTC
  availability: breached (burning), 6.2 % errors over 5m (measured), 0.1 % allowed, burning 62 times the budget
  latency: unknown (no-data): empty result
Tried
  rollback-flag version=v41 at 11:45 UTC; measured: 6.13 % errors before, 6.2 % after: no-change
Why Setpoint stopped
  budget-spent: 1 left, the dearest outcome costs 2
  cooldown: sent 15m ago, until 2026-11-29 12:15:00 UTC
Autonomy budget left
  1 of 3 for scale, 8.5 of 10 for the whole fleet
What else you can run
  setpoint deny t42 --reason '…'
  setpoint explain checkout
  setpoint ack e12
In the proposer's own words, which reached no decision (openai, model some-model)
  “queue grows ‹!channel› [click] (http://evil)”`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Gist == "" {
		t.Error("no gist")
	}
}

func TestRenderVariants(t *testing.T) {
	cases := map[string]struct {
		reason            string
		change            func(*escalate.PageFacts)
		summary, severity string
		lines             []string
		not               []string
	}{
		"Blind": {
			reason: "an unknown state is not health and not a number",
			change: func(f *escalate.PageFacts) {
				f.Reason, f.Why, f.Ticket, f.Proposal, f.Tried = escalate.Blind, "no data for 12m", nil, nil, nil
				f.Assessment.State, f.Assessment.Reason = compare.Unknown, measure.NoData
			},
			summary: "checkout cannot be judged (no-data); no data for 12m", severity: "warning",
			lines: []string{"nothing was tried in this episode, and nothing is proposed\n"}, not: []string{"setpoint approve", "own words"},
		},
		"NowBlind": {
			reason: "breached, then unknown: the page stays critical and says so",
			change: func(f *escalate.PageFacts) {
				f.Reason, f.Why = escalate.Blind, "no data for 12m"
				f.Assessment.State, f.Assessment.Reason = compare.Unknown, measure.NoData
				f.Opened = &escalate.Page{Reason: escalate.CannotAct, Severity: "critical", Since: at(-time.Hour), AckedBy: "os:alice"}
			},
			summary: "checkout is now blind: it was reported, and since then checkout cannot be judged (no-data); no data for 12m", severity: "critical",
		},
		"InDoubt": {
			reason:  "the person who can settle it gets both commands",
			change:  func(f *escalate.PageFacts) { f.Reason, f.Decision, f.Ticket = escalate.InDoubt, "d12", nil },
			summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; t42 (scale) waits for a person", severity: "critical",
			lines: []string{"setpoint settle d12 --as landed --reason '…', or not-landed\n", "  setpoint settle d12 --as not-landed --reason '…'\n"},
		},
		"Suspended": {
			reason: "only a named reset lifts it",
			change: func(f *escalate.PageFacts) {
				f.Reason, f.Suspended, f.Why, f.Ticket = escalate.Suspended, "scale", "two worsened", nil
			},
			summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; two worsened", severity: "critical",
			lines: []string{"setpoint budget reset --service checkout --action scale --reason '…'\n"},
		},
		"Source": {
			reason: "a fault without a service has no objectives",
			change: func(f *escalate.PageFacts) {
				*f = escalate.PageFacts{ID: "source/main", Reason: escalate.SourceDown, Why: "source main does not answer", Now: t0}
			},
			summary: "setpoint: source main does not answer", severity: "warning",
			lines: []string{"  setpoint ack source/main"}, not: []string{"Measured", "explain"},
		},
		"ClosedTicket": {
			reason:  "a command that would be refused is not offered",
			change:  func(f *escalate.PageFacts) { f.Ticket.State = approve.Expired },
			summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; t42 (scale) waits for a person", severity: "critical",
			not: []string{"setpoint approve"},
		},
		"Names": {
			reason:  "a name must not run something when the line is pasted",
			change:  func(f *escalate.PageFacts) { f.Service.Name = "a;rm -rf '$(x)'\n"; f.Why = "x" },
			summary: "a;rm -rf '$(x)' misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; x", severity: "critical",
			lines: []string{`  setpoint explain 'a;rm -rf '\''$(x)'\'''` + "\n"},
		},
		"Fallback": {
			reason: "who reads it must know that no model had a say",
			change: func(f *escalate.PageFacts) {
				f.Proposal = &propose.Proposal{Kind: propose.KindNone, Fallback: "timeout: endpoint main: obey me"}
			},
			summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; t42 (scale) waits for a person", severity: "critical",
			lines: []string{"the proposer knows no step that helps", "the rules say so, because no model answered: no answer came in time"},
		},
		"Malformed": {
			reason: "a reply that was none is said to be none",
			change: func(f *escalate.PageFacts) {
				f.Proposal = &propose.Proposal{Kind: propose.KindMalformed, Fault: "malformed: unknown action \"hunter2\""}
			},
			summary: "checkout misses availability: 6.2 % errors over 5m (measured), 0.1 % allowed; t42 (scale) waits for a person", severity: "critical",
			lines: []string{"nothing: the answer is no valid proposal"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			tc.change(&f)
			got := escalate.Render(f)
			if got.Summary != tc.summary || got.Severity != tc.severity {
				t.Errorf("%s:\n got %s (%s)\nwant %s (%s)", tc.reason, got.Summary, got.Severity, tc.summary, tc.severity)
			}
			for _, l := range tc.lines {
				if !strings.Contains(got.Text+"\n", l) {
					t.Errorf("%s: no %q in\n%s", tc.reason, l, got.Text)
				}
			}
			for _, l := range append(tc.not, "hunter2") {
				if strings.Contains(got.Text, l) {
					t.Errorf("%s: %q in\n%s", tc.reason, l, got.Text)
				}
			}
			if f.Opened != nil && (got.Reason != f.Opened.Reason || !got.Since.Equal(f.Opened.Since) || got.AckedBy != f.Opened.AckedBy || got.Now != f.Reason) {
				t.Errorf("%s: identity %+v", tc.reason, got)
			}
		})
	}
}

// The pass that changes nothing sends nothing: numbers, ages and passing
// reasons move the text, not the gist; what a person must hear of moves both.
func TestGist(t *testing.T) {
	base := escalate.Render(facts())
	cases := map[string]struct {
		change func(*escalate.PageFacts)
		same   bool
	}{
		"Numbers":   {func(f *escalate.PageFacts) { f.Assessment.Objectives[0].Judge.ErrorRatio = 0.07 }, true},
		"Time":      {func(f *escalate.PageFacts) { f.Now, f.Assessment.At = at(time.Minute), at(time.Minute) }, true},
		"Reasons":   {func(f *escalate.PageFacts) { f.Reasons = f.Reasons[:1] }, true},
		"Rationale": {func(f *escalate.PageFacts) { f.Proposal.Rationale = "other words" }, true},
		"Why":       {func(f *escalate.PageFacts) { f.Why = "for 3m" }, true},
		"Reason":    {func(f *escalate.PageFacts) { f.Reason = escalate.ApprovalExpired }, false},
		"Outcome":   {func(f *escalate.PageFacts) { f.Tried[1].Outcome = compare.OutcomeWorsened }, false},
		"Ticket":    {func(f *escalate.PageFacts) { f.Ticket.ID = "t43" }, false},
		"Plan":      {func(f *escalate.PageFacts) { f.Proposal.Parameters["replicas"] = int64(8) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			tc.change(&f)
			if got := escalate.Render(f); (got.Gist == base.Gist) != tc.same {
				t.Errorf("gist same %t, want %t", got.Gist == base.Gist, tc.same)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	p := escalate.Render(facts())
	want := map[string]string{"alertname": "SetpointEscalation", "service": "checkout", "episode": "e12", "severity": "critical", "reason": "approval-needed"}
	if diff := cmp.Diff(want, p.Labels()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, ok := p.Annotations()["ended"]; ok {
		t.Error("an open page says how it ended")
	}
	p.EndedAt, p.EndReason = t0, "recovered"
	if got := p.Annotations()["ended"]; got != "recovered" {
		t.Errorf("ended %q", got)
	}
	if escalate.Severity("a word of a later version") != escalate.SeverityCritical {
		t.Error("an unknown reason must not be quieter")
	}
}

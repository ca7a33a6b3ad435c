package escalate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// TestOver: the end of a page says that it is over, why, and what was done; none of
// what an open page asks for is left in it.
func TestOver(t *testing.T) {
	for _, reason := range reasons(t) {
		t.Run(reason, func(t *testing.T) {
			p := told(reason)
			if diff := cmp.Diff(p, p.Over()); diff != "" {
				t.Fatalf("an open page is not itself:\n%s", diff)
			}
			p.EndedAt, p.EndReason, p.AckedBy = at(5*time.Minute), "recovered", "slack:T1/U1"
			got := p.Over()
			if reason == escalate.Heartbeat {
				if diff := cmp.Diff(p, got); diff != "" {
					t.Errorf("a heartbeat has no end:\n%s", diff)
				}
				return
			}
			for _, left := range []string{"not yet long enough", "until: it is met", "do: wait", "do: act", "would do", "setpoint approve", "setpoint ack", "setpoint settle d12", "next receiver", "not judged yet;"} {
				if strings.Contains(got.Text+got.Summary, left) {
					t.Errorf("it still says %q:\n%s\n%s", left, got.Summary, got.Text)
				}
			}
			for _, want := range []string{"12:05:00 UTC", "why: it ended because ", "until: it is over", "acknowledged by slack:T1/U1", "do: nothing"} {
				if !strings.Contains(got.Text, want) {
					t.Errorf("no %q in\n%s", want, got.Text)
				}
			}
			if !strings.HasPrefix(got.Summary, "over: ") || got.ContentDigest() != p.ContentDigest() {
				t.Errorf("summary %q, or another content", got.Summary)
			}
			if diff := cmp.Diff(got, got.Over()); diff != "" {
				t.Errorf("told twice it changes:\n%s", diff)
			}
			golden(t, "over/"+reason+".txt", got.Summary+"\n\n"+got.Text+"\n")
		})
	}
}

func TestOverReasons(t *testing.T) {
	for end, want := range map[string]string{
		"recovered":         "why: it ended because it was met for long enough, by measurement",
		"document-removed":  "why: it ended because its documents were removed, so it is not looked after any more; it was open because of this: missed",
		"ended-by-os:alice": "why: it ended because os:alice ended it",
		"":                  "why: it ended because nothing asks for it any more",
	} {
		p := told(escalate.CannotAct)
		p.EndedAt, p.EndReason = at(time.Minute), end
		if got := p.Over().Lead.Why; !strings.HasPrefix(got, want) {
			t.Errorf("%q:\n got %s\nwant %s", end, got, want)
		}
	}
	p := told(escalate.Recovering)
	p.EndedAt, p.EndReason = at(5*time.Minute), "recovered"
	if got, want := p.Over().Lead.Broken, "checkout meets its SLO again since 11:59:00Z; the page ended at 12:05:00 UTC after 28m"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := p.Over().Lead.Step; got != did {
		t.Errorf("what was done: %s", got)
	}
	p = told(escalate.ApprovalVoid) // something was done before what was not
	p.EndedAt, p.EndReason = at(5*time.Minute), "recovered"
	if got := p.Over().Lead.Step; got != did {
		t.Errorf("what was done: %s", got)
	}
}

// TestFor: each receiver is told why the page came to it, and who is next after it,
// never itself.
func TestFor(t *testing.T) {
	p := told(escalate.CannotAct)
	p.ID, p.Receivers = "e12", []string{"oncall", "backup", "boss"}
	const m = time.Minute
	down := make([]escalate.Rule, len(rules))
	copy(down, rules)
	down[0].Down = true
	fails := []escalate.Delivery{failed(escalate.Delivery{}, "oncall", 3, 0)}
	cases := map[string]struct {
		reason, receiver string
		held             []escalate.Delivery
		rules            []escalate.Rule
		now              time.Duration
		why, next        string
	}{
		"First":      {"the first is told because of the page", "oncall", nil, rules, 0, "why: missed", "; next receiver backup at 12:10:00 UTC unless acknowledged"},
		"Held":       {"its wait began when it got it", "oncall", []escalate.Delivery{sent(p, "oncall", 0)}, rules, m, "why: missed", "; next receiver backup at 12:10:00 UTC unless acknowledged"},
		"Unanswered": {"the second because the first did not", "backup", []escalate.Delivery{sent(p, "oncall", 0)}, rules, 10 * m, "why: you are told because oncall did not acknowledge it within 10m; missed", "; next receiver boss at 12:30:00 UTC unless acknowledged"},
		"Failed":     {"or could not", "backup", fails, rules, m, "why: you are told because oncall could not be reached; missed", "; next receiver boss at 12:21:00 UTC unless acknowledged"},
		"Down":       {"which was known before", "backup", nil, down, 0, "why: you are told because oncall could not be reached; missed", "; next receiver boss at 12:20:00 UTC unless acknowledged"},
		"Last":       {"nobody comes after the last", "boss", []escalate.Delivery{sent(p, "oncall", 0), sent(p, "backup", 10*m)}, rules, 30 * m, "why: you are told because backup did not acknowledge it within 20m; missed", "; nobody is next"},
		"Unknown":    {"a name without a receiver", "backup", nil, rules[1:], 0, "why: you are told because oncall, who comes before you, is not configured; missed", "; next receiver boss at 12:20:00 UTC unless acknowledged"},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			got := p.For(tt.receiver, tt.held, tt.rules, at(tt.now))
			if !strings.HasPrefix(got.Lead.Why, tt.why) {
				t.Errorf("%s:\n got %s\nwant %s", tt.reason, got.Lead.Why, tt.why)
			}
			if want := "until: it is met for 5m by measurement" + tt.next; got.Lead.Until != want {
				t.Errorf("%s:\n got %s\nwant %s", tt.reason, got.Lead.Until, want)
			}
			lines := got.Lead.Lines()
			if !strings.HasPrefix(got.Text, strings.Join(lines[:], "\n")+"\n") || got.ContentDigest() != p.ContentDigest() {
				t.Errorf("the text does not begin with the lead, or the content is another:\n%s", got.Text)
			}
		})
	}
	acked := p
	acked.AckedBy = "os:alice"
	beat, bare := escalate.NewHeartbeat("oncall", time.Hour, t0), page()
	for _, same := range []escalate.Page{acked, beat, bare} {
		if diff := cmp.Diff(same, same.For("backup", fails, rules, at(m))); diff != "" {
			t.Errorf("changed:\n%s", diff)
		}
	}
}

// TestOwner: who is woken can see whose service it is.
func TestOwner(t *testing.T) {
	f := night()
	if got := escalate.Render(f).Text; strings.Contains(got, "Owner") {
		t.Errorf("an owner that nobody named:\n%s", got)
	}
	f.Service.Remediation.Owner = "team-payments"
	if got := escalate.Render(f).Text; !strings.Contains(got, "\nOwner\n  team-payments\n") {
		t.Errorf("no owner in\n%s", got)
	}
}

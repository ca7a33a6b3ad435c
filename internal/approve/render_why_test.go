package approve_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The lead says one reason in plain words, short and whole; the others are counted,
// and stand below.
func TestWhyIsShort(t *testing.T) {
	mode := gate.Reason{Code: "mode", Text: "mode approval of the Remediation allows approval at most"}
	limit := gate.Reason{Code: "max-mode", Text: "limits.maxMode approval allows approval at most"}
	class := gate.Reason{Code: "class-approval", Text: "restart has class approval: a person must agree"}
	docs := gate.Reason{Code: "documents-changed", Text: "the documents of b changed at 2026-11-30 17:47:47Z"}
	rule := gate.Reason{Code: "policy:class", Text: "policy asks a person: An action of class approval runs when a person agrees (class.rego:37); approve or deny the ticket; set class auto in the Remediation once its outcomes earned it"}
	paren := gate.Reason{Code: "policy:odd", Text: "policy asks a person: A change (of any size)"}
	long := gate.Reason{Code: "policy:long", Text: "policy asks a person: " + strings.Repeat("so it is ", 60) + "(long.rego:1)"}
	tests := map[string]struct {
		reason string
		asked  []gate.Reason
		want   string
	}{
		"Rule":   {"a rule's title says most", []gate.Reason{mode, limit, class, docs, rule}, "why: policy asks a person: An action of class approval runs when a person agrees; and 4 more reasons below"},
		"Floor":  {"what is so of every question comes last", []gate.Reason{mode, docs}, "why: a person is asked because the documents of b changed at 2026-11-30 17:47:47Z; and 1 more reason below"},
		"Class":  {"there is nothing else", []gate.Reason{class}, "why: a person is asked because restart has class approval: a person must agree"},
		"Title":  {"brackets of a title are no file", []gate.Reason{paren}, "why: policy asks a person: A change (of any size)"},
		"NoText": {"a code alone", []gate.Reason{{Code: "warming"}}, "why: a person is asked because of warming"},
		"None":   {"nothing is recorded", nil, "why: a person is asked because policy asks for one"},
		"Long":   {"a title of any length", []gate.Reason{long, mode, limit}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := cardFacts()
			f.Ticket.Reasons, f.Ticket.Needs = tt.asked, nil
			for _, r := range tt.asked {
				f.Ticket.Needs = append(f.Ticket.Needs, gate.Need{Reason: r.Code, Approvers: []string{"@oncall"}, Quorum: 1})
			}
			c := approve.RenderCard(f)
			if tt.want != "" && c.Lead.Why != tt.want {
				t.Errorf("%s: %q, want %q", tt.reason, c.Lead.Why, tt.want)
			}
			if n := utf8.RuneCountInString(c.Lead.Why); n > 160 {
				t.Errorf("%d characters: %s", n, c.Lead.Why)
			}
			if n := len(tt.asked); n > 1 && !strings.HasSuffix(c.Lead.Why, " below") {
				t.Errorf("the others are not counted: %s", c.Lead.Why)
			}
			for _, r := range tt.asked {
				if !strings.Contains(c.Text(), "\n  "+r.Code) {
					t.Errorf("%s does not stand below:\n%s", r.Code, c.Text())
				}
			}
		})
	}
}

// A step of an episode that ended minutes ago is shown as what it is.
func TestTriedBeforeTheEpisode(t *testing.T) {
	f := cardFacts()
	f.Tried = []propose.Tried{
		{Action: "drain", At: asked.Add(-25 * time.Hour), Effect: "applied", Outcome: compare.OutcomeRecovered},
		{Action: "restart", At: asked.Add(-24 * time.Hour), Effect: "applied", Outcome: compare.OutcomeNoChange},
		{Action: "scale", At: asked.Add(-time.Minute), Effect: "applied", Outcome: compare.OutcomeWorsened, ThisEpisode: true},
	}
	var got []string
	for _, s := range approve.RenderCard(f).Sections {
		if strings.HasPrefix(s.Heading, "Tried") {
			got = append(got, s.Heading+": "+strings.Join(s.Lines, " | "))
		}
	}
	text := strings.Join(got, "\n")
	if len(got) != 2 || !strings.Contains(got[0], "Tried in this episode: did: scale") || strings.Contains(got[0], "restart") ||
		!strings.Contains(got[1], "Tried in the day before this episode: did: restart") || strings.Contains(text, "drain") {
		t.Errorf("sections:\n%s", text)
	}
}

// A sent card says by the clock when it is judged, as far as that is known.
func TestSentSaysWhenItIsJudged(t *testing.T) {
	f := sentFacts()
	f.Service.Objectives = []spec.Objective{{ID: "availability", JudgeWindow: 5 * time.Minute}, {ID: "latency", JudgeWindow: 10 * time.Minute}}
	// Applied 12:06:02, settled 12:10:02, measured for the longest window.
	if got := approve.RenderCard(f).Lead.Until; !strings.HasPrefix(got, "until: it is judged soon after 12:20:02 UTC: it settles for 4m, then errors are measured for 10m; ") {
		t.Error(got)
	}
	f.Course.AppliedAt = time.Time{}
	if got := approve.RenderCard(f).Lead.Until; !strings.HasPrefix(got, "until: what came of it is measured once it has settled; ") {
		t.Error(got)
	}
}

func TestRest(t *testing.T) {
	for d, want := range map[time.Duration]string{
		3*time.Minute - time.Second: "3m", 3*time.Minute - 31*time.Second: "2m", 2*time.Minute - 400*time.Millisecond: "2m",
		119 * time.Second: "1m59s", 1400 * time.Millisecond: "1s", 0: "0s", -time.Minute: "0s", 90 * time.Minute: "1h30m",
	} {
		if got := approve.Rest(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// A note says each thing once, and in our words only what we know.
func TestNotesSayItOnce(t *testing.T) {
	f := cardCases()["judged"]
	f.Course.Effect, f.Course.Detail, f.Course.Outcome = "not-now", "busy", compare.OutcomeUnknown
	want := map[string]string{
		"effect-not-now":  "effect: put off by its target (not-now), nothing was changed (“busy”)",
		"outcome-unknown": "outcome: unknown, because nothing could be measured after it",
	}
	for _, n := range approve.RenderCard(f).Notes {
		if w := want[n.ID]; w != "" && n.Text != w {
			t.Errorf("%s: %q, want %q", n.ID, n.Text, w)
		}
		delete(want, n.ID)
	}
	f.Course.Outcome = compare.OutcomeNoChange
	want["outcome-no-change"] = "outcome: no-change (measured: 23 % errors before, 0.2 % after)"
	for _, n := range approve.RenderCard(f).Notes {
		if n.ID == "outcome-no-change" && n.Text == want[n.ID] {
			delete(want, n.ID)
		}
	}
	if len(want) != 0 {
		t.Errorf("not said: %v", want)
	}
}

package approve_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden files")

var now = at(2 * time.Minute)

// cardFacts are those of an open ticket two minutes after it was asked.
func cardFacts() approve.CardFacts {
	act := spec.Action{
		Name: "rollback-flag", Uses: "webhook.post", Reversal: spec.Restore, Settle: 4 * time.Minute,
		Target: spec.Target{URL: "http://flags.internal/checkout", StatusURL: "http://flags.internal/checkout", Secret: "scaler"},
	}
	f := approve.CardFacts{
		Service: spec.Service{Name: "checkout", Remediation: spec.Remediation{Actions: []spec.Action{act}}},
		Assessment: compare.Assessment{
			Service: "checkout", At: now, State: compare.Breached, Reason: compare.Burning,
			Objectives: []compare.Objective{
				{ID: "availability", State: compare.Breached, Reason: compare.Burning, Target: 0.99, Judge: judge(0.23)},
				{ID: "latency", State: compare.Met, Target: 0.95, Judge: judge(0.012)},
			},
		},
		Since: at(-10 * time.Minute),
		Tried: []propose.Tried{
			{Action: "restart", At: at(-26 * time.Hour), Effect: "applied", Outcome: compare.OutcomeRecovered},
			{Action: "restart", At: at(-8 * time.Minute), Effect: "applied", Outcome: compare.OutcomeNoChange, Before: 0.22, After: 0.23, ThisEpisode: true},
		},
		Balance: &budget.Balance{Remaining: 1, Capacity: 3, GlobalRemaining: 8.5, GlobalCapacity: 10},
		PageURL: "http://setpoint.internal/tickets/t7", TraceURL: "http://traces.internal/4bf92f",
		Now: now,
	}
	f.Ticket = approve.Ticket{
		ID: "t7", Service: "checkout", Episode: "e3", Decision: "d118", Key: "checkout:1764417600-600",
		Proposal: propose.Proposal{
			Kind: propose.KindAction, Action: "rollback-flag", Parameters: propose.Parameters{"version": "v41"},
			Rationale: "Errors began with v42, so the version before it is worth a try.", Proposer: propose.Proposer{Kind: "openai", Model: "some-model"},
		},
		Needs: []gate.Need{
			{Reason: "policy:second-try", Approvers: []string{"@payments"}, Quorum: 2, Expires: 15 * time.Minute},
			{Reason: "budget-spent", Approvers: []string{"@sre"}, Quorum: 1, Expires: 15 * time.Minute},
		},
		Reasons: []gate.Reason{
			{Code: "budget-spent", Text: "1 left, the dearest outcome costs 2"},
			{Code: "policy:second-try", Text: "policy asks a person: A second try in one episode (checkout.rego:12)"},
			{Code: "policy:flags-in-daytime", Text: "policy allows: Flags may be rolled back in daytime (checkout.rego:30)"},
		},
		Asked: asked, Expires: at(15 * time.Minute), State: approve.Open,
	}
	return redigested(f)
}

func judge(ratio float64) measure.Measurement {
	return measure.Measurement{
		ID: measure.ID{Window: 5 * time.Minute}, Good: 1000 * (1 - ratio), Total: 1000, HasEvents: true, ErrorRatio: ratio, SampleAt: now,
	}
}

// redigested gives the ticket the digest of its bytes.
func redigested(f approve.CardFacts) approve.CardFacts {
	a, _ := f.Service.Action(f.Ticket.Proposal.Action)
	d, err := gate.Digest(f.Ticket.Service, f.Ticket.Key, a, f.Ticket.Proposal.Parameters)
	if err == nil {
		f.Ticket.Digest = d
	}
	return f
}

func saying(approves bool, by, reason string, d time.Duration, needs ...int) approve.Answer {
	return approve.Answer{Ticket: "t7", By: by, Via: "slack", Approve: approves, Reason: reason, At: at(d), Satisfies: needs}
}

// approvedFacts are of a ticket that three people approved and that waits.
func approvedFacts() approve.CardFacts {
	f := cardFacts()
	for i, by := range []string{"slack:T01/U02", "os:alice", "os:carol"} {
		f.Ticket = approve.Apply(f.Ticket, saying(true, by, []string{"", "go <!channel>", "fits"}[i], time.Duration(3+i)*time.Minute, i/2))
	}
	f.Now = at(6 * time.Minute)
	return f
}

func sentFacts() approve.CardFacts {
	f := approvedFacts()
	f.Ticket.ClaimedAt, f.Ticket.StartedAt = at(6*time.Minute), at(6*time.Minute+time.Second)
	f.Course = approve.Course{ClaimedAt: at(6 * time.Minute), SentAt: at(6*time.Minute + time.Second), Effect: "applied", AppliedAt: at(6*time.Minute + 2*time.Second), Detail: "200 OK", Outcome: compare.OutcomePending}
	f.Now = at(7 * time.Minute)
	return f
}

// cardCases are every state of a ticket.
func cardCases() map[string]approve.CardFacts {
	cases := map[string]approve.CardFacts{}
	add := func(name string, f approve.CardFacts, change func(*approve.CardFacts)) {
		if change != nil {
			change(&f)
		}
		cases[name] = f
	}
	end := func(s approve.State, reason string) func(*approve.CardFacts) {
		return func(f *approve.CardFacts) { f.Ticket = approve.End(f.Ticket, s, reason) }
	}
	met := func(f *approve.CardFacts) {
		f.Assessment.State, f.Assessment.Reason = compare.Met, ""
		f.Assessment.Objectives[0].State, f.Assessment.Objectives[0].Reason = compare.Met, ""
		f.Assessment.Objectives[0].Judge = judge(0.002)
	}
	add("open", cardFacts(), nil)
	add("open-partly", cardFacts(), func(f *approve.CardFacts) {
		f.Ticket = approve.Apply(f.Ticket, saying(true, "slack:T01/U02", "", 3*time.Minute, 0))
		f.Now = at(4 * time.Minute)
	})
	add("open-storm", cardFacts(), func(f *approve.CardFacts) { f.Storm = "9 of 20 services are breached" })
	add("open-changed", cardFacts(), func(f *approve.CardFacts) {
		f.Service.Remediation.Actions[0].Target.URL = "http://flags.internal/other"
	})
	add("open-blind", cardFacts(), func(f *approve.CardFacts) {
		f.Assessment.State, f.Assessment.Reason = compare.Unknown, measure.NoData
		f.Assessment.Objectives = []compare.Objective{{ID: "availability", State: compare.Unknown, Reason: measure.NoData, Detail: "empty result", Target: 0.99}}
	})
	add("open-overdue", cardFacts(), func(f *approve.CardFacts) { f.Now = at(15 * time.Minute) })
	add("open-undo", cardFacts(), func(f *approve.CardFacts) {
		f.Ticket.Proposal.Undo, f.Ticket.Proposal.Undoes, f.Ticket.Proposal.Rationale = true, "checkout:1764417000-600", ""
		f.Ticket.Proposal.Proposer = propose.Proposer{Kind: "undo"}
	})
	add("approved-waiting", approvedFacts(), nil)
	add("approved-claimed", approvedFacts(), func(f *approve.CardFacts) { f.Ticket.ClaimedAt = at(6 * time.Minute) })
	add("approved-unsent", approvedFacts(), func(f *approve.CardFacts) {
		f.Ticket.ClaimedAt = at(6 * time.Minute)
		f.Course = approve.Course{ClaimedAt: at(6 * time.Minute), Effect: "void", VoidReason: "permit-expired", Over: true}
	})
	add("sent", sentFacts(), nil)
	add("sent-in-doubt", sentFacts(), func(f *approve.CardFacts) {
		f.Course.Effect, f.Course.Detail, f.Course.Outcome = "in-doubt", "no answer", ""
	})
	add("sent-failed", sentFacts(), func(f *approve.CardFacts) {
		f.Course.Effect, f.Course.Detail, f.Course.Outcome, f.Course.Over = "failed", "404 <no such flag>", compare.OutcomeNone, true
	})
	add("judged", sentFacts(), func(f *approve.CardFacts) {
		met(f)
		f.Course.JudgedAt, f.Course.Outcome, f.Course.Before, f.Course.After, f.Course.Over = at(16*time.Minute), compare.OutcomeRecovered, 0.23, 0.002, true
		f.Now = at(17 * time.Minute)
	})
	add("denied", cardFacts(), func(f *approve.CardFacts) {
		f.Ticket = approve.Apply(f.Ticket, saying(false, "os:alice", "v41 has the other bug", 3*time.Minute, 0, 1))
		f.Now = at(4 * time.Minute)
	})
	add("expired", cardFacts(), func(f *approve.CardFacts) { end(approve.Expired, "nobody answered")(f); f.Now = at(16 * time.Minute) })
	add("withdrawn", cardFacts(), func(f *approve.CardFacts) { met(f); end(approve.Withdrawn, "recovered")(f) })
	add("void", approvedFacts(), func(f *approve.CardFacts) {
		f.Service.Remediation.Actions[0].Target.URL = "http://flags.internal/other"
		end(approve.Void, "digest-changed")(f)
	})
	add("void-removed", cardFacts(), func(f *approve.CardFacts) {
		f.Service.Remediation.Actions = nil
		end(approve.Void, "document-removed")(f)
	})
	return cases
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "cards", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), go test -update writes it:\n%s", path, diff)
	}
}

// shown is a card with what stands beside its text.
func shown(c approve.Card) []byte {
	var b strings.Builder
	b.WriteString(c.Text() + "\n\n")
	b.WriteString("title: " + c.Title + "\n")
	if c.NoClick != "" {
		b.WriteString("no click: " + c.NoClick + "\n")
	}
	for _, n := range c.Notes {
		b.WriteString("note " + n.ID + ": " + n.Text + "\n")
	}
	fmt.Fprintf(&b, "final: %t\n", c.Final)
	return []byte(b.String())
}

// Every state of a ticket has words of its own, which people read before they act.
func TestCards(t *testing.T) {
	leads := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(cardCases())) {
		t.Run(name, func(t *testing.T) {
			c := approve.RenderCard(cardCases()[name])
			golden(t, name+".txt", shown(c))
			j, err := json.MarshalIndent(c, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", append(j, '\n'))
			lines := c.Lead.Lines()
			key := strings.Join(lines[1:], "\n")
			if other, same := leads[key]; same && name != "open-blind" {
				t.Errorf("the lead is that of %s", other)
			}
			leads[key] = name
			for i, line := range lines {
				if line == "" || strings.Contains(line, "\n") {
					t.Errorf("line %d is %q", i+1, line)
				}
			}
		})
	}
}

func TestDigestCards(t *testing.T) {
	many := make([]approve.Ticket, 0, 25)
	for i := range 25 {
		f := cardFacts()
		f.Ticket.ID, f.Ticket.Service = fmt.Sprintf("t%d", i+10), fmt.Sprintf("service-%02d", i)
		f.Ticket.Expires = at(time.Duration(40-i) * time.Minute)
		many = append(many, f.Ticket)
	}
	cases := map[string]struct {
		waiting []approve.Ticket
		storm   string
		open    bool
	}{
		"digest-one":   {many[:1], "", true},
		"digest-many":  {many, "", true},
		"digest-storm": {many[:3], "9 of 20 services are breached", true},
		"digest-empty": {nil, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := approve.RenderDigest(tc.waiting, tc.storm, now)
			if c.Ticket != approve.DigestCard || c.Open() != tc.open || c.Final == tc.open || c.Exact != "" || tc.open && c.NoClick == "" {
				t.Errorf("card %+v", c)
			}
			golden(t, name+".txt", shown(c))
			j, err := json.MarshalIndent(c, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", append(j, '\n'))
		})
	}
	if c := approve.RenderDigest(many, "", now); !c.Expires.Equal(at(16 * time.Minute)) {
		t.Errorf("expires %s, want the soonest", c.Expires)
	}
}

// The first five lines of a card that asks are, in order: what is broken since when
// and by how much, what would be done to which target, why, until when and what
// then, what to do.
func TestLeadHoldsTheFive(t *testing.T) {
	for name, f := range cardCases() {
		c := approve.RenderCard(f)
		if !c.Open() || name == "open-overdue" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			lines := strings.SplitN(c.Text(), "\n", 6)
			want := [5][]string{
				{"checkout", "since 11:50:00 UTC (1", "m): "},
				{"would do: rollback-flag version=v41 on webhook.post http://flags.internal/checkout"},
				{"why: policy asks a person: A second try in one episode; and 1 more reason below"},
				{"until: 12:15:00 UTC (in ", "without an answer "},
				{"do: ", "deny below", "setpoint "},
			}
			if name == "open-changed" {
				// Another target than the asked one is never shown as if it were asked.
				want[1] = []string{"was asked to do: rollback-flag version=v41", "something else now"}
				if strings.Contains(c.Text(), "/other") || c.NoClick == "" {
					t.Errorf("%s\n%s", c.NoClick, c.Text())
				}
			}
			for i, parts := range want {
				for _, part := range parts {
					if !strings.Contains(lines[i], part) {
						t.Errorf("line %d has no %q: %s", i+1, part, lines[i])
					}
				}
			}
			if measured := strings.Contains(lines[0], "23 % errors over 5m (measured), 1 % allowed"); measured == (name == "open-blind") {
				t.Errorf("line 1: %s", lines[0])
			}
			if c.NoClick == "" {
				for _, part := range []string{"approve or deny below", "setpoint approve t7 --reason '…'", "2 of @payments (", "1 of @sre (1 missing)"} {
					if !strings.Contains(lines[4], part) {
						t.Errorf("line 5 has no %q: %s", part, lines[4])
					}
				}
			} else if strings.Contains(lines[4], "setpoint approve") {
				t.Errorf("line 5 offers what is not to be clicked: %s", lines[4])
			}
		})
	}
}

// A card that ended asks nobody for anything.
func TestEndedCardsDoNotAsk(t *testing.T) {
	for name, f := range cardCases() {
		c := approve.RenderCard(f)
		if c.Open() && name != "open-overdue" {
			continue
		}
		text := c.Title + "\n" + c.Text()
		for _, ask := range []string{"would do", "approve or deny", "setpoint approve", "?", "is asked because"} {
			if strings.Contains(text, ask) {
				t.Errorf("%s: still says %q:\n%s", name, ask, text)
			}
		}
	}
}

// An update is worth a request when a person would want to see it, and numbers that
// move with each pass are not.
func TestCardGist(t *testing.T) {
	cases := map[string]struct {
		base   func() approve.CardFacts
		change func(*approve.CardFacts)
		same   bool
	}{
		"Numbers":    {cardFacts, func(f *approve.CardFacts) { f.Assessment.Objectives[0].Judge = judge(0.31) }, true},
		"Time":       {cardFacts, func(f *approve.CardFacts) { f.Now = at(5 * time.Minute); f.Assessment.At = f.Now }, true},
		"Tried":      {cardFacts, func(f *approve.CardFacts) { f.Tried[1].After = 0.4 }, true},
		"TriedLater": {cardFacts, func(f *approve.CardFacts) { f.Tried[1].Outcome = compare.OutcomeWorsened }, false},
		"TriedFate":  {cardFacts, func(f *approve.CardFacts) { f.Tried[1].Effect = "landed" }, false},
		"TriedMore":  {cardFacts, func(f *approve.CardFacts) { f.Tried = append(f.Tried, f.Tried[1]) }, false},
		"Balance":    {cardFacts, func(f *approve.CardFacts) { f.Balance.GlobalRemaining = 2 }, true},
		"StormWords": {func() approve.CardFacts { f := cardFacts(); f.Storm = "9 of 20"; return f }, func(f *approve.CardFacts) { f.Storm = "10 of 20" }, true},
		"Storm":      {cardFacts, func(f *approve.CardFacts) { f.Storm = "9 of 20" }, false},
		"Answer": {cardFacts, func(f *approve.CardFacts) {
			f.Ticket = approve.Apply(f.Ticket, saying(true, "os:alice", "", 3*time.Minute, 0))
		}, false},
		"End":        {cardFacts, func(f *approve.CardFacts) { f.Ticket = approve.End(f.Ticket, approve.Expired, "") }, false},
		"Reason":     {func() approve.CardFacts { return cardCases()["void"] }, func(f *approve.CardFacts) { f.Ticket.Reason = "too-late" }, false},
		"Changed":    {cardFacts, func(f *approve.CardFacts) { f.Service.Remediation.Actions = nil }, false},
		"Blind":      {cardFacts, func(f *approve.CardFacts) { f.Assessment.State = compare.Unknown }, false},
		"Overdue":    {cardFacts, func(f *approve.CardFacts) { f.Now = f.Ticket.Expires }, false},
		"Claim":      {approvedFacts, func(f *approve.CardFacts) { f.Course.ClaimedAt = at(6 * time.Minute) }, false},
		"Sent":       {approvedFacts, func(f *approve.CardFacts) { f.Course.SentAt = at(6 * time.Minute) }, false},
		"Effect":     {sentFacts, func(f *approve.CardFacts) { f.Course.Effect = "in-doubt" }, false},
		"Outcome":    {sentFacts, func(f *approve.CardFacts) { f.Course.Outcome = compare.OutcomeWorsened }, false},
		"Over":       {sentFacts, func(f *approve.CardFacts) { f.Course.Over = true }, false},
		"EndedState": {sentFacts, func(f *approve.CardFacts) { f.Assessment.State = compare.Met }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, f := approve.RenderCard(tc.base()), tc.base()
			tc.change(&f)
			if after := approve.RenderCard(f); (after.Gist == before.Gist) != tc.same || after.Gist == "" {
				t.Errorf("gist same %t, want %t", after.Gist == before.Gist, tc.same)
			}
		})
	}
	many := []approve.Ticket{cardFacts().Ticket, approvedFacts().Ticket}
	gists := []string{
		approve.RenderDigest(nil, "", now).Gist, approve.RenderDigest(many[:1], "", now).Gist,
		approve.RenderDigest(many, "", now).Gist, approve.RenderDigest(many, "storm", now).Gist,
	}
	if slices.Sort(gists); len(slices.Compact(gists)) != 4 {
		t.Errorf("digest cards that differ share a gist: %v", gists)
	}
	if a, b := approve.RenderDigest(many, "", now), approve.RenderDigest(many, "", at(9*time.Minute)); a.Gist != b.Gist {
		t.Error("time alone moves the gist of a digest card")
	}
}

func TestFinal(t *testing.T) {
	want := map[string]bool{"approved-unsent": true, "sent-failed": true, "judged": true, "denied": true, "expired": true, "withdrawn": true, "void": true, "void-removed": true}
	for name, f := range cardCases() {
		if got := approve.RenderCard(f).Final; got != want[name] {
			t.Errorf("%s: final %t, want %t", name, got, want[name])
		}
	}
	f := cardCases()["denied"]
	f.Ticket.ClaimedAt = at(4 * time.Minute)
	if approve.RenderCard(f).Final {
		t.Error("a denied ticket whose claim is not settled is final")
	}
	f.Course.Over = true
	if !approve.RenderCard(f).Final {
		t.Error("a denied ticket whose claim is over is not final")
	}
}

// Notes are said once each: what was derived before keeps its id, its time and its
// place, whatever comes after it.
func TestNotesKeepTheirIDs(t *testing.T) {
	life := []approve.CardFacts{cardFacts(), cardCases()["open-partly"], approvedFacts(), cardCases()["approved-claimed"], sentFacts(), cardCases()["judged"]}
	var before []approve.Note
	for i, f := range life {
		got := approve.RenderCard(f).Notes
		ids := map[string]bool{}
		for j, n := range got {
			if n.ID == "" || ids[n.ID] || n.Text == "" || j > 0 && n.At.Before(got[j-1].At) && !n.At.IsZero() {
				t.Errorf("step %d: note %d of %+v", i, j, got)
			}
			ids[n.ID] = true
		}
		for _, n := range before {
			k := slices.IndexFunc(got, func(m approve.Note) bool { return m.ID == n.ID })
			if k < 0 || !got[k].At.Equal(n.At) {
				t.Errorf("step %d: %s was at %s, and is in %+v", i, n.ID, n.At, got)
			}
		}
		if i > 0 && len(got) <= len(before) {
			t.Errorf("step %d added no note", i)
		}
		before = got
	}
	if n := approve.RenderCard(cardFacts()).Notes; len(n) != 0 {
		t.Errorf("a ticket to which nothing happened has notes %+v", n)
	}
}

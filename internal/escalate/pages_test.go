package escalate_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (go test -update writes it):\n%s", file, diff)
	}
}

// reasons are the words of the code: a new one without a page fails here.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "escalate.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || !strings.HasPrefix(group.Doc.Text(), "Reasons that page") {
			continue
		}
		for _, s := range group.Specs {
			for _, v := range s.(*ast.ValueSpec).Values {
				word, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, word)
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("found %d reasons, which cannot be all", len(out))
	}
	return out
}

// night is a service that is missed, before anything was tried.
func night() escalate.PageFacts {
	f := facts()
	f.Service.Remediation.HoldFor = 5 * time.Minute
	f.Ticket, f.Tried, f.Balance, f.Reasons = nil, nil, nil, nil
	f.Next = escalate.Turn{Receiver: "backup", At: at(12 * time.Minute)}
	return f
}

func afterStep(f *escalate.PageFacts) { f.Tried = facts().Tried }

func unknownNow(f *escalate.PageFacts) {
	f.Assessment.State, f.Assessment.Reason = compare.Unknown, measure.NoData
	f.Assessment.Objectives = f.Assessment.Objectives[1:]
}

func metAgain(f *escalate.PageFacts) {
	f.Assessment.State, f.Assessment.Reason = compare.Met, ""
	f.Assessment.Objectives = f.Assessment.Objectives[:1]
	o := &f.Assessment.Objectives[0]
	o.State, o.Reason, o.Judge.Good, o.Judge.ErrorRatio = compare.Met, "", 999.8, 0.0002
}

// story is one page: what is known, and the words that the first five lines must
// hold, one fact each.
type story struct {
	why   string
	given func(*escalate.PageFacts)
	facts [5]string
}

const misses = "checkout misses availability since 11:37:00 UTC (23m): 6.2 % errors over 5m (measured), 0.1 % allowed"

const (
	would  = "would do: scale note=\"a b\" replicas=6 on webhook.post http://scaler.internal/checkout"
	undone = "not done: scale note=\"a b\" replicas=6 on webhook.post http://scaler.internal/checkout"
	did    = "did: rollback-flag version=v41 at 11:45 UTC; measured: 6.13 % errors before, 6.2 % after: no-change"
	held   = "until: it is met for 5m by measurement; next receiver backup at 12:12:00 UTC unless acknowledged"
	asking = "until: 12:15:00 UTC; then t42 expires"
)

// stories are those of every reason that pages.
var stories = map[string]story{
	escalate.CannotAct: {"missed since 11:37:00Z, and no step is permitted: 1 left, the dearest outcome costs 2",
		func(f *escalate.PageFacts) { afterStep(f); f.Reasons, f.Balance = facts().Reasons, facts().Balance },
		[5]string{misses, did, "no step is permitted", held, "setpoint explain checkout"}},
	escalate.Acting: {"rollback-flag of checkout:1 is applied and is judged by measurement",
		func(f *escalate.PageFacts) {
			f.Tried = []propose.Tried{{Action: "rollback-flag", At: at(-time.Minute), Effect: "applied", Outcome: compare.OutcomePending, ThisEpisode: true}}
		},
		[5]string{misses, "not judged yet", "is judged by measurement", held, "setpoint explain checkout"}},
	escalate.Recovering: {"met again since 11:59:00Z; over after 5m of it",
		func(f *escalate.PageFacts) { afterStep(f); metAgain(f) },
		[5]string{"checkout meets its SLO again", did, "met again since", held, "setpoint explain checkout"}},
	escalate.HandedOver: {"scale up and scale down took turns on this target: oscillation", afterStep,
		[5]string{misses, did, "oscillation", held, "act by hand: setpoint explain checkout"}},
	escalate.Blind: {"unknown (no-data) since 11:37:00Z",
		func(f *escalate.PageFacts) {
			unknownNow(f)
			f.Proposal = nil
			f.Opened = &escalate.Page{Reason: escalate.CannotAct, Severity: "critical", Since: at(-time.Hour)}
		},
		[5]string{"now blind, and it was reported before (cannot-act)", "nothing was tried", "unknown (no-data)", held, "setpoint validate --live"}},
	escalate.TrafficLost: {"unknown (traffic-lost) since 11:37:00Z",
		func(f *escalate.PageFacts) {
			unknownNow(f)
			f.Assessment.Reason, f.Proposal = compare.TrafficLost, nil
		},
		[5]string{"checkout cannot be judged since 11:37:00 UTC (23m): traffic-lost", "nothing was tried", "traffic-lost", held, "setpoint explain checkout"}},
	escalate.InDoubt: {"nobody can tell whether scale of checkout:1 landed; its target stays locked until setpoint settle",
		func(f *escalate.PageFacts) {
			f.Decision = "d12"
			f.Tried = []propose.Tried{{Action: "scale", At: at(-15 * time.Minute), Effect: "unknown", ThisEpisode: true}}
		},
		[5]string{misses, "nobody can tell whether it arrived", "nobody can tell whether scale", "its target stays locked", "setpoint settle d12 --as landed"}},
	escalate.ApprovalNeeded: {"t42 (scale) waits until 12:15:00Z; asked because its class is approval",
		func(f *escalate.PageFacts) { afterStep(f); f.Ticket, f.Balance = facts().Ticket, facts().Balance },
		[5]string{misses, would, "asked because its class is approval", asking, "setpoint approve t42"}},
	escalate.ApprovalExpired: {"t42 (scale) was not answered in time",
		func(f *escalate.PageFacts) { f.Lapsed = facts().Ticket; f.Lapsed.State = approve.Expired },
		[5]string{misses, undone + "; it is not asked again in this episode", "was not answered in time", held, "act by hand, it is not asked again"}},
	escalate.ApprovalVoid: {"t42 (scale) could not be executed: too-late",
		func(f *escalate.PageFacts) { afterStep(f); f.Lapsed = facts().Ticket; f.Lapsed.State = approve.Void },
		[5]string{misses, undone, "could not be executed: too-late", held, "act by hand if it is still needed"}},
	escalate.DependencyDown: {"waits for payments-db, which is breached",
		func(f *escalate.PageFacts) { f.Proposal = nil },
		[5]string{misses, "nothing was tried", "waits for payments-db", held, "mend what it waits for first"}},
	escalate.Suspended: {"scale is suspended: two worsened in a row",
		func(f *escalate.PageFacts) { afterStep(f); f.Suspended = "scale" },
		[5]string{misses, did, "two worsened in a row", held, "setpoint budget reset --service checkout --action scale"}},
	escalate.UndoHeld: {"rollback-flag of checkout:1 made things worse and is not taken back: foreign-change",
		func(f *escalate.PageFacts) {
			afterStep(f)
			f.Tried[1].Outcome = compare.OutcomeWorsened
			f.Reasons = []gate.Reason{{Code: gate.ReasonForeignChange, Text: "somebody else changed version to v44"}}
		},
		[5]string{misses, "after: worsened", "is not taken back: foreign-change", held, "take it back by hand"}},
	escalate.SpecProblem: {"missed since 11:37:00Z and never met since its documents were loaded: is the target or a query wrong?",
		func(f *escalate.PageFacts) { f.Proposal = nil },
		[5]string{misses, "nothing was tried", "never met since", held, "setpoint validate --live"}},
	escalate.DocumentsRemoved: {"its Remediation was removed while it was missed",
		func(f *escalate.PageFacts) { f.Proposal = nil },
		[5]string{misses, "nothing was tried", "was removed", held, "setpoint validate"}},
	escalate.SourceDown: {"source main does not answer; unknown: checkout, search", fleetWide,
		[5]string{"a source of measurements cannot be used, since 11:40:00 UTC (20m)", "nothing is done for services that only it measures", "source main does not answer", "it answers again", "setpoint doctor"}},
	escalate.PolicyFault: {"policies/gate.rego:12: rego_parse_error", fleetWide,
		[5]string{"the policy cannot be used as it stands, since 11:40:00 UTC (20m)", "nothing is done", "rego_parse_error", "the policy loads", "setpoint policy check"}},
	escalate.LedgerFault: {"the ledger cannot be used, nothing is done: no space left on device", fleetWide,
		[5]string{"the ledger cannot be used, since", "nothing is proposed, approved or sent", "no space left", "can be read and written again", "setpoint ledger verify"}},
	escalate.KeyConflict: {"checkout:1764417600-600 is claimed with other bytes than this process decided on; do all replicas have the same documents?", fleetWide,
		[5]string{"two writers decided differently about one key, since", "sent nothing under that key", "other bytes", "the window of that key is over", "setpoint validate"}},
	escalate.Storm: {"storm: 30 of 40 services are breached; nothing is proposed, approved or sent until it has passed: a, b, c", fleetWide,
		[5]string{"many services at once", "nothing is proposed, approved or sent while it lasts", "30 of 40", "passed by measurement", "setpoint get drift"}},
	escalate.ExceptionExpired: {"exception black-friday of checkout (team-payments) expired at 2026-11-29T00:00:00Z and is still in the documents", fleetWide,
		[5]string{"an exception has expired", "changed by people alone", "black-friday", "removed or renewed", "setpoint validate"}},
	escalate.ReceiverDown: {"receiver backup took nothing since 11:40:00Z: HTTP 500", func(f *escalate.PageFacts) { fleetWide(f); f.Subject = "backup" },
		[5]string{"receiver backup takes no pages, since", "the other receivers get its pages", "HTTP 500", "it takes a page", "setpoint doctor"}},
	escalate.Heartbeat: {"every 1h", func(f *escalate.PageFacts) { fleetWide(f); f.Next = escalate.Turn{} },
		[5]string{"nothing is broken", "nothing was done", "every 1h", "the next one", "do: nothing"}},
}

// fleetWide is a page of no service.
func fleetWide(f *escalate.PageFacts) {
	*f = escalate.PageFacts{
		ID: f.Reason, Reason: f.Reason, Why: f.Why, Now: f.Now, Next: f.Next,
		Opened: &escalate.Page{ID: f.Reason, Reason: f.Reason, Severity: escalate.Severity(f.Reason), Since: at(-20 * time.Minute)},
	}
}

func told(reason string) escalate.Page {
	f := night()
	s := stories[reason]
	f.Reason, f.Why = reason, s.why
	s.given(&f)
	return escalate.Render(f)
}

// TestPages: whoever was just woken reads five lines, each with its own fact, and
// the last one names what to do.
func TestPages(t *testing.T) {
	for _, reason := range reasons(t) {
		t.Run(reason, func(t *testing.T) {
			s, ok := stories[reason]
			if !ok {
				t.Fatal("there is no story of this reason: add one to stories")
			}
			p := told(reason)
			lines := strings.SplitN(p.Text+"\n\n\n\n\n", "\n", 6)
			for i, fact := range s.facts {
				if !strings.Contains(lines[i], fact) {
					t.Errorf("line %d has no %q:\n%s", i+1, fact, lines[i])
				}
				if n := len([]rune(lines[i])); n > approve.MaxLine {
					t.Errorf("line %d has %d characters", i+1, n)
				}
			}
			if diff := cmp.Diff(p.Lead.Lines(), [5]string(lines[:5])); diff != "" {
				t.Errorf("the text does not begin with the lead:\n%s", diff)
			}
			golden(t, "pages/"+reason+".txt", p.Summary+"\n\n"+p.Text+"\n")
		})
	}
}

// TestChain: who reads a page knows who is told next.
func TestChain(t *testing.T) {
	cases := map[string]struct {
		next  escalate.Turn
		acked string
		want  string
	}{
		"Known":    {escalate.Turn{Receiver: "backup", At: at(12 * time.Minute)}, "", "; next receiver backup at 12:12:00 UTC unless acknowledged"},
		"NotYet":   {escalate.Turn{Receiver: "backup", After: 10 * time.Minute}, "", "; next receiver backup, 10m after the first has it, unless acknowledged"},
		"Last":     {escalate.Turn{}, "", ""},
		"Acked":    {escalate.Turn{Receiver: "backup", At: at(12 * time.Minute)}, "slack:T1/U1", "; acknowledged by slack:T1/U1, so nobody else is told"},
		"Stranger": {escalate.Turn{}, "x\n`y`", "; acknowledged by x 'y', so nobody else is told"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := night()
			f.Next = tc.next
			if tc.acked != "" {
				f.Opened = &escalate.Page{Reason: f.Reason, AckedBy: tc.acked}
			}
			if got, want := escalate.Render(f).Lead.Until, "until: it is met for 5m by measurement"+tc.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestNextTurn(t *testing.T) {
	rules := []escalate.Rule{{Name: "a"}, {Name: "b", EscalateAfter: 5 * time.Minute}, {Name: "c"}}
	holds := func(name string, when time.Duration) escalate.Delivery {
		return escalate.Delivery{Receiver: name, First: at(when), Sent: at(when)}
	}
	fails := func(name string) escalate.Delivery { return failed(escalate.Delivery{Page: "e12"}, name, 3, 0) }
	over := holds("a", 0)
	over.Ended = true
	cases := map[string]struct {
		reason    string
		receivers []string
		held      []escalate.Delivery
		now       time.Duration
		want      escalate.Turn
	}{
		"New":     {"nobody holds it yet, so the time is not known", []string{"a", "b"}, nil, 0, escalate.Turn{Receiver: "b", After: 5 * time.Minute, Holder: "a"}},
		"Held":    {"the wait counts from when the first one got it", []string{"a", "b", "c"}, []escalate.Delivery{holds("a", time.Minute)}, time.Minute, escalate.Turn{Receiver: "b", At: at(6 * time.Minute)}},
		"Default": {"a receiver without a wait has ten minutes", []string{"a", "c"}, []escalate.Delivery{holds("a", 0)}, 0, escalate.Turn{Receiver: "c", At: at(10 * time.Minute)}},
		"Second":  {"and from the second one on for the third", []string{"a", "b", "c"}, []escalate.Delivery{holds("b", time.Minute)}, time.Minute, escalate.Turn{Receiver: "c", At: at(11 * time.Minute)}},
		"Earlier": {"what ended is held no more", []string{"a", "b"}, []escalate.Delivery{over}, 0, escalate.Turn{Receiver: "b", After: 5 * time.Minute, Holder: "a"}},
		"Last":    {"after the last one there is nobody", []string{"a", "b"}, []escalate.Delivery{holds("a", 0), holds("b", 0)}, 0, escalate.Turn{}},
		"Alone":   {"one alone is told at once", []string{"a"}, nil, 0, escalate.Turn{}},
		"Gone":    {"who is not configured is not told", []string{"a", "x", "b"}, []escalate.Delivery{holds("a", 0)}, 0, escalate.Turn{Receiver: "b", At: at(5 * time.Minute)}},
		"Due":     {"whose turn has come is not next", []string{"a", "b", "c"}, []escalate.Delivery{holds("a", 0)}, 5 * time.Minute, escalate.Turn{Receiver: "c", After: 10 * time.Minute, Holder: "b"}},
		"Failed":  {"nor is who comes after one that fails", []string{"a", "b", "c"}, []escalate.Delivery{fails("a")}, time.Second, escalate.Turn{Receiver: "c", After: 10 * time.Minute, Holder: "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := page()
			p.Receivers = tc.receivers
			if diff := cmp.Diff(tc.want, escalate.NextTurn(p, tc.held, rules, at(tc.now))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/policies"
)

const recordedMonth = "../../evals/month.jsonl.gz"

// replayOf runs the command without any configuration.
func replayOf(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: func(string) string { return "" }, now: time.Now,
		configPath: filepath.Join(t.TempDir(), "none.yaml"),
	}
	code = a.run(append([]string{"policy", "replay"}, args...))
	return code, stdout.String(), stderr.String()
}

// replayAnswer is what scripts read of the answer.
type replayAnswer struct {
	Kind, Bundle, Revision string
	Since                  time.Time
	Items                  []struct {
		Service, Action, Change, First, Last string
		Count                                int
		Appeared, Gone                       []struct {
			Set, Reason, Title, File string
			Line                     int
		}
	}
	NotReproduced []struct {
		Decision, Why string
		Entry         uint64
	}
	NotReplayable []struct {
		Why   string
		Count int
	}
	Summary struct {
		Decisions, Reproduced, NotReproduced, NotReplayable, Changed, Loosened, Tightened, OtherReasons, Hidden int
	}
}

func answerOf(t *testing.T, out string) replayAnswer {
	t.Helper()
	var a replayAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a
}

// The recorded month reproduces under the policy that is recorded in it, and runs
// under the one in policies/, whatever has become of that since.
func TestReplayOfTheRecordedMonth(t *testing.T) {
	code, out, errs := replayOf(t, "--ledger", recordedMonth, "--with", "../../policies", "--fail-on", "none", "-o", "json")
	if code != exitFine || errs != "" {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	a := answerOf(t, out)
	s := a.Summary
	if s.NotReproduced != 0 || s.Decisions < 150 || s.Reproduced < 120 || s.Decisions != s.Reproduced+s.NotReplayable {
		t.Errorf("summary %+v", s)
	}
	if s.Changed > s.Reproduced/4 {
		t.Errorf("%d of %d change under the shipped policy: record the month anew (setpoint-lab eval record)", s.Changed, s.Reproduced)
	}
	// Thirty days back from its newest entry, whatever today is.
	if want := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC); a.Since.Sub(want).Abs() > 24*time.Hour {
		t.Errorf("since %s", a.Since)
	}
	counted := 0
	for _, n := range a.NotReplayable {
		counted += n.Count
	}
	if counted != s.NotReplayable {
		t.Errorf("reasons for %d decisions that are not replayable, want %d", counted, s.NotReplayable)
	}
}

// bundleWith writes the shipped policy with more rules.
func bundleWith(t *testing.T, more string) string {
	t.Helper()
	b, err := rego.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range append(b.Files(), rego.File{Path: "more.rego", Data: []byte("package setpoint.gate\n" + more)}) {
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	noFailover = `
# METADATA
# title: Nobody fails over alone
# custom: {remedy: call the bank}
deny contains "no-failover" if input.action.name == "failover"
`
	anyUndo = `
# METADATA
# title: Anything that is asked of a person runs by itself
# custom: {remedy: none}
auto contains "anything" if input.action.class == "approval"
`
)

func TestReplayCountsAndDirections(t *testing.T) {
	dir := bundleWith(t, noFailover+anyUndo)
	code, out, _ := replayOf(t, "--ledger", recordedMonth, "--with", dir, "-o", "json", "--all")
	if code != exitFound {
		t.Errorf("exit %d, want %d", code, exitFound)
	}
	a := answerOf(t, out)
	words := map[string]int{}
	for _, i := range a.Items {
		words[i.Change] += i.Count
		for _, r := range i.Appeared {
			if want := filepath.Join(dir, "more.rego"); r.Reason == "no-failover" && (r.File != want || r.Line != 6 || r.Set != "deny" || r.Title == "") {
				t.Errorf("rule %+v, want it in %s:6", r, want)
			}
		}
	}
	s := a.Summary
	want := map[string]int{"tightened": s.Tightened, "hidden": s.Hidden, "other-reasons": s.OtherReasons}
	for word, n := range want {
		if n == 0 {
			delete(want, word)
		}
	}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("items by word against the summary (-want +got):\n%s", diff)
	}
	// A further auto beside an approval decides nothing: no one is asked less.
	if s.Loosened != 0 || s.Tightened == 0 || s.Changed != s.Tightened || s.OtherReasons == 0 {
		t.Errorf("summary %+v", s)
	}
	if code, _, _ := replayOf(t, "--ledger", recordedMonth, "--with", dir, "--fail-on", "loosened"); code != exitFine {
		t.Errorf("exit %d although nothing is loosened", code)
	}
	if code, _, _ := replayOf(t, "--ledger", recordedMonth, "--with", dir, "--service", "fulfilment"); code != exitFine {
		t.Errorf("exit %d although nothing changes for fulfilment", code)
	}
}

// Without the rule that asks about a second try more runs alone.
func TestReplayFindsWhatIsLoosened(t *testing.T) {
	dir := bundleWith(t, "")
	name := filepath.Join(dir, "repeat.rego")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), `contains "second-try" if {`, "contains \"second-try\" if {\n\tinput.service.name == \"nobody\"", 1)
	if edited == string(text) {
		t.Fatal("policies/repeat.rego has no rule second-try any more")
	}
	if err := os.WriteFile(name, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := replayOf(t, "--ledger", recordedMonth, "--with", dir, "--fail-on", "loosened")
	if code != exitFound || !strings.Contains(out, " loosened ") || !strings.Contains(out, "-approval second-try") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if !strings.Contains(out, "in the recorded policy)") {
		t.Errorf("the table does not say where a rule that is gone stood:\n%s", out)
	}
}

// forged is the recorded month with one verdict changed, and chained anew.
func forged(t *testing.T) (file string, entry uint64) {
	t.Helper()
	a := &app{in: strings.NewReader("")}
	x, err := a.readExport(recordedMonth)
	if err != nil {
		t.Fatal(err)
	}
	var head ledger.Position
	for i, e := range x.Entries {
		body, err := ledger.Decode(e)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := body.(ledger.Decided); ok && entry == 0 && d.Decision.Verdict == gate.Approval {
			d.Decision.Verdict, d.Decision.Needs, entry = gate.Auto, nil, e.Seq
			body = d
		}
		linked, err := ledger.Link(head, e.Time, ledger.Draft{Kind: e.Kind, Service: e.Service, Unique: e.Unique, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		x.Entries[i], head = linked, linked.Position()
	}
	var text bytes.Buffer
	if err := ledger.Export(t.Context(), exported{x}, &text); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "forged.jsonl")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, entry
}

// exported is an export as the source of another one.
type exported struct{ replay.Export }

func (x exported) EachBlob(_ context.Context, f func(string, []byte) error) error {
	for digest, blob := range x.Blobs {
		if err := f(digest, blob); err != nil {
			return err
		}
	}
	return nil
}

// A record that does not reproduce is named, and outweighs every change.
func TestReplayNamesWhatDoesNotReproduce(t *testing.T) {
	file, entry := forged(t)
	code, out, errs := replayOf(t, "--ledger", file, "--with", bundleWith(t, noFailover))
	if code != exitError {
		t.Errorf("exit %d, want %d", code, exitError)
	}
	if want := ledger.DecisionID(entry) + " (entry "; !strings.Contains(errs, want) || !strings.Contains(errs, `verdict: recorded "auto", its policy leads to "approval"`) {
		t.Errorf("standard error does not name %s:\n%s", want, errs)
	}
	if !strings.Contains(errs, "1 recorded decision does not reproduce") || !strings.Contains(out, " 1 not, ") || !strings.Contains(out, " tightened") {
		t.Errorf("%s%s", out, errs)
	}
	code, out, _ = replayOf(t, "--ledger", file, "--with", "../../policies", "--fail-on", "none", "-o", "json")
	if a := answerOf(t, out); code != exitError || len(a.NotReproduced) != 1 || a.NotReproduced[0].Entry != entry {
		t.Errorf("exit %d, %+v", code, a.NotReproduced)
	}
}

// A policy that is too slow for an agent is not called good.
func TestReplayTellsOfASlowPolicy(t *testing.T) {
	var errs bytes.Buffer
	a := &app{err: &errs}
	p, err := rego.Load(fstest.MapFS{"gate.rego": {Data: []byte("package setpoint.gate\n" + noFailover)}}, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	by := &timed{Policy: p}
	r := &replay.Report{Summary: replay.Summary{Decisions: 1, Reproduced: 1}}
	by.slowest.Store(int64(rego.DefaultDeadline))
	if err := a.replayEnd(r, replayFlags{failOn: failChanged}, by); err != nil || errs.Len() > 0 {
		t.Errorf("%v %s", err, errs.String())
	}
	by.slowest.Store(int64(rego.DefaultDeadline + time.Second))
	if err := a.replayEnd(r, replayFlags{failOn: failChanged}, by); err != nil || !strings.Contains(errs.String(), "the slowest evaluation took 2s, and an agent ends one after 1s") {
		t.Errorf("%v %s", err, errs.String())
	}
	if got := by.Evaluate(t.Context(), []byte("{}")); got.Fault == "" || by.slowest.Load() < int64(time.Second) {
		t.Errorf("ruling %+v, slowest %d", got, by.slowest.Load())
	}
}

func TestStandText(t *testing.T) {
	need := func(quorum int, within time.Duration, who ...string) gate.Need {
		return gate.Need{Quorum: quorum, Expires: within, Approvers: who}
	}
	asks := func(needs ...gate.Need) replay.Stand {
		return replay.Stand{Verdict: gate.Approval, Lasting: gate.Approval, Needs: needs}
	}
	tests := map[string]struct {
		reason   string
		old, new replay.Stand
		needs    bool
		was, is  string
	}{
		"Verdicts":    {"one word each", asks(need(1, time.Hour, "@x")), replay.Stand{Verdict: gate.Escalate, Lasting: gate.Escalate}, false, "approval", "escalate"},
		"Held":        {"what comes after", replay.Stand{Hold: true, Lasting: gate.Auto}, replay.Stand{Hold: true, Lasting: gate.Approval}, false, "hold, then auto", "hold, then approval"},
		"HeldForGood": {"nothing is granted behind it", replay.Stand{Hold: true, Lasting: gate.Auto}, replay.Stand{Hold: true}, false, "hold, then auto", "hold"},
		"Fault":       {"the policy could not rule", replay.Stand{Verdict: gate.Auto, Lasting: gate.Auto}, replay.Stand{Hold: true, Fault: "error"}, false, "auto", "hold (fault: error)"},
		"People":      {"whom it asks", asks(need(1, time.Hour, "@x", "os:y")), asks(need(2, time.Hour, "@x"), need(2, time.Hour, "@x")), true, "approval: 1 of @x os:y", "approval: 2 of @x"},
		"Time":        {"and for how long, where that differs", asks(need(1, time.Hour, "@x")), asks(need(1, 2*time.Hour, "@x")), true, "approval: 1 of @x within 1h", "approval: 1 of @x within 2h"},
		"Ticket":      {"people agreed, and no rule asks for more", asks(), asks(need(1, time.Hour, "@x")), true, "approval: given", "approval: 1 of @x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			i := replay.Item{Old: tt.old, New: tt.new, Difference: gate.Difference{Needs: tt.needs}}
			if was, is := standText(i.Old, i), standText(i.New, i); was != tt.was || is != tt.is {
				t.Errorf("%s: %q and %q, want %q and %q", tt.reason, was, is, tt.was, tt.is)
			}
		})
	}
}

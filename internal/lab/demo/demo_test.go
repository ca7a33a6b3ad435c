package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/lab/demo"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func TestFindRoot(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"repo/slo", "repo/evals", "repo/bin/deep", "half/slo", "else"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		starts []string
		want   string
	}{
		"Here":       {"the working directory is it", []string{"repo"}, "repo"},
		"Above":      {"a folder below it", []string{"repo/bin/deep"}, "repo"},
		"SecondOnly": {"not above the working directory, but above the binary", []string{"else", "repo/bin"}, "repo"},
		"Half":       {"slo/ alone is somebody else's", []string{"half"}, ""},
		"Nowhere":    {"neither", []string{"else"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var starts []string
			for _, s := range tc.starts {
				starts = append(starts, filepath.Join(top, s))
			}
			got, err := demo.FindRoot(starts...)
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "--root") {
					t.Errorf("%s: %q, %v; want an error that names --root", tc.reason, got, err)
				}
				return
			}
			if want := filepath.Join(top, tc.want); err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", tc.reason, got, err, want)
			}
		})
	}
	if err := demo.CheckRoot(filepath.Join(top, "half")); err == nil {
		t.Error("a folder without evals/ was taken")
	}
	if err := demo.CheckRoot(filepath.Join(top, "repo")); err != nil {
		t.Error(err)
	}
}

// TestLines shows a run as a person sees it: a line only where something
// changed, an outcome even where the next decision came in the same pass.
func TestLines(t *testing.T) {
	ratio := func(f float64) *float64 { return &f }
	now := at(0)
	svc := func(state, reason, episode string) web.Service {
		return web.Service{Service: "fulfilment", State: state, Reason: reason, Episode: episode, LastObserved: &now}
	}
	unseen := svc("unknown", "not-observed", "")
	unseen.LastObserved = nil
	errs := func(f float64) []web.Objective {
		return []web.Objective{{Service: "fulfilment", State: "met", JudgeErrorRatio: ratio(f)}}
	}
	d := func(id, verdict, effect, outcome string) web.Decision {
		return web.Decision{
			ID: id, Service: "fulfilment", Episode: "e7", Step: "execute", Action: "recycle-workers",
			Parameters: propose.Parameters{}, Verdict: verdict, Effect: effect, Outcome: outcome,
		}
	}
	look := func(s web.Service, f float64, ds ...web.Decision) demo.Look {
		return demo.Look{Services: []web.Service{s}, Objectives: errs(f), Decisions: ds}
	}
	open := look(svc("breached", "burning", "e7"), 0.49, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "none", "none"))
	open.Approvals = []web.Approval{{ID: "t10", Service: "fulfilment", Episode: "e7", Decision: "d9", State: "open"}}
	unknown := web.Service{Service: "catalog", State: "unknown", Reason: "no-data", Episode: "e30", LastObserved: &now}
	rolled := d("d5", "auto", "applied", "pending")
	rolled.Service, rolled.Episode, rolled.Action = "checkout", "e4", "rollback"
	rolled.Parameters = propose.Parameters{"version": "v41"}
	looks := []demo.Look{
		look(unseen, 0),
		look(svc("met", "", ""), 0),
		look(svc("met", "", ""), 0.002),
		look(svc("breached", "burning", "e7"), 0.5),
		look(svc("breached", "burning", "e7"), 0.51, d("d8", "auto", "applied", "pending")),
		look(svc("breached", "burning", "e7"), 0.50, d("d8", "auto", "applied", "pending")),
		open,
		look(svc("breached", "burning", "e7"), 0.49, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "applied", "pending")),
		look(svc("breached", "recovering", "e7"), 0.2, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "applied", "pending")),
		look(svc("met", "", "e7"), 0.09, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "applied", "pending")),
		look(svc("met", "", "e7"), 0, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "applied", "recovered")),
		look(svc("met", "", ""), 0, d("d8", "auto", "applied", "no-change"), d("d9", "approval", "applied", "recovered")),
		{Services: []web.Service{unknown}},
		{
			Services:   []web.Service{{Service: "checkout", State: "breached", Reason: "burning", Episode: "e4", LastObserved: &now}},
			Objectives: []web.Objective{{Service: "checkout", State: "breached", JudgeErrorRatio: ratio(0.6)}}, Decisions: []web.Decision{rolled},
		},
	}
	got := demo.Lines(looks, map[string]web.Judgement{"d8": {Before: 0.5, After: 0.49}, "d9": {Before: 0.49, After: 0}})
	golden(t, "lines.txt", []byte(strings.Join(got, "\n")+"\n"))
}

func TestPersonAnswers(t *testing.T) {
	cases := map[string]struct {
		typed   string
		approve bool
		reason  string
		err     error
		prompts int
	}{
		"Yes":      {"y\nthe other shard\n", true, "the other shard", nil, 2},
		"No":       {"NO\n not now \n", false, "not now", nil, 2},
		"Unclear":  {"perhaps\n\nyes\nwhy not\n", true, "why not", nil, 4},
		"NoReason": {"y\n\n", true, "no reason was given in the demo", nil, 2},
		"NoTyping": {"", false, "", demo.ErrNobody, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var screen bytes.Buffer
			approve, reason, err := demo.Ask(t.Context(), &screen, false, strings.NewReader(tc.typed))
			if approve != tc.approve || reason != tc.reason || !errors.Is(err, tc.err) {
				t.Errorf("got %v, %q, %v; want %v, %q, %v", approve, reason, err, tc.approve, tc.reason, tc.err)
			}
			if n := strings.Count(screen.String(), "[y/n] ") + strings.Count(screen.String(), ": "); n != tc.prompts {
				t.Errorf("%d prompts, want %d: %q", n, tc.prompts, screen.String())
			}
		})
	}
}

func TestPersonWithoutTerminal(t *testing.T) {
	if _, _, err := demo.Ask(t.Context(), io.Discard, false, nil); !errors.Is(err, demo.ErrNobody) {
		t.Errorf("error = %v, want %v", err, demo.ErrNobody)
	}
}

// TestPersonYes leaves time to read, and gives up with the question.
func TestPersonYes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		approve, reason, err := demo.Ask(t.Context(), io.Discard, true, nil)
		if err != nil || !approve || !strings.Contains(reason, "--yes") || time.Since(began) == 0 {
			t.Errorf("got %v, %q, %v after %s", approve, reason, err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if approve, _, err := demo.Ask(ctx, io.Discard, true, nil); approve || !errors.Is(err, context.Canceled) {
			t.Errorf("a closed question was answered: %v, %v", approve, err)
		}
	})
}

// TestPersonIsInterrupted: the question ends although nobody typed.
func TestPersonIsInterrupted(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := demo.Ask(ctx, io.Discard, false, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}

func TestOpenQuestionStaysLast(t *testing.T) {
	var plain, coloured bytes.Buffer
	show := func(say func(string), ask func(string), answered func()) {
		say("before")
		ask("y/n? ")
		say("meanwhile")
		answered()
		say("after")
	}
	demo.Paper(&plain, false, show)
	demo.Paper(&coloured, true, show)
	if diff := cmp.Diff("before\ny/n? \nmeanwhile\ny/n? after\n", plain.String()); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(coloured.String(), "\x1b[31mbefore\x1b[0m\n") {
		t.Errorf("colours: %q, %q", plain.String(), coloured.String())
	}
}

func TestEpisodesSince(t *testing.T) {
	entry := func(seq uint64, second int, service string, kind ledger.Kind, body any) ledger.Entry {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Entry{Seq: seq, Time: at(second), Service: service, Kind: kind, Body: raw}
	}
	change := func(from, to compare.State, reason compare.Reason) ledger.StateChange {
		return ledger.StateChange{From: from, To: to, Reason: reason}
	}
	got, err := demo.EpisodesSince([]ledger.Entry{
		entry(2, -9, "checkout", ledger.KindState, change("", "unknown", "low-traffic")),
		entry(3, -5, "checkout", ledger.KindState, change("unknown", "met", "")),
		entry(4, -1, "checkout", ledger.KindRecovered, ledger.Recovered{Episode: "e2"}),
		entry(5, 3, "checkout", ledger.KindState, change("met", "breached", "burning")),
		entry(6, 4, "catalog", ledger.KindState, change("met", "unknown", "no-data")),
		entry(7, 5, "other", ledger.KindState, change("met", "breached", "burning")),
		entry(8, 9, "checkout", ledger.KindState, change("breached", "met", "")),
		entry(9, 19, "checkout", ledger.KindRecovered, ledger.Recovered{Episode: "e5"}),
		entry(10, 60, "checkout", ledger.KindState, change("met", "breached", "burning")),
	}, map[string]time.Time{"checkout": at(0), "catalog": at(1), "fulfilment": at(2)})
	want := map[string]demo.EpisodeFacts{
		"checkout": {ID: "e5", State: "breached", Reason: "burning", Began: at(3), Breached: at(3), Recovered: at(19)},
		"catalog":  {ID: "e6", State: "unknown", Reason: "no-data", Began: at(4)},
	}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

// engine answers every question with its own instant.
type engine func(expr string, at time.Time) (float64, bool, error)

func (e engine) Value(_ context.Context, expr string, at time.Time) (float64, bool, error) {
	return e(expr, at)
}

func TestProbeAsksTheJudgedWindows(t *testing.T) {
	set := spec.Set{Services: []spec.Service{{Name: "checkout", Objectives: []spec.Objective{{ID: "a", JudgeWindow: 10 * time.Second}}}}}
	effects := []*ledger.Effect{
		{
			Service: "checkout", ClaimedAt: at(0).Add(time.Microsecond), AppliedAt: at(1), Judgement: &compare.Judgement{Before: 0.6, After: 0.1},
			Claim: ledger.Claim{Key: rollback, Action: spec.Action{Settle: 4 * time.Second}},
		},
		{Service: "checkout"},
	}
	var asked []time.Time
	got, err := demo.Probe(t.Context(), engine(func(expr string, at time.Time) (float64, bool, error) {
		if !strings.Contains(expr, `service="checkout"`) || !strings.Contains(expr, "[10s]") || strings.Contains(expr, "increase") {
			t.Errorf("asked %s", expr)
		}
		asked = append(asked, at)
		return 0.5, true, nil
	}), set, effects)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Time{at(0), at(15)}, asked); diff != "" {
		t.Errorf("instants (-want +got):\n%s", diff)
	}
	want := []demo.ProbeFacts{
		{What: "before", Key: rollback, Recorded: 0.6, Answer: 0.5, OK: true},
		{What: "after", Key: rollback, Recorded: 0.1, Answer: 0.5, OK: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("storage is closed")
	_, err = demo.Probe(t.Context(), engine(func(string, time.Time) (float64, bool, error) { return 0, false, broken }), set, effects)
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}

func TestBecauseNamesBoth(t *testing.T) {
	got := demo.Because(web.DecisionDetail{
		Rules: []web.Rule{
			{Set: "approval", Reason: "second-try", Title: "A second attempt", File: "repeat.rego", Line: 9},
			{Set: "auto", Reason: "reversible"},
		},
		Details: []web.Detail{{Code: "budget-spent", Text: "1 of 2 spent; the dearest outcome costs 2"}, {Code: "policy:second-try"}},
	})
	want := []string{
		"policy   second-try: A second attempt (repeat.rego:9)",
		"balance  budget-spent: 1 of 2 spent;",
		"         the dearest outcome costs 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEnded(t *testing.T) {
	met := []web.Service{{Service: "checkout", State: "met"}}
	cases := map[string]struct {
		reason string
		look   demo.Look
		want   bool
	}{
		"Judged":    {"recovered and held", demo.Look{Services: met, Decisions: []web.Decision{{Service: "checkout", Outcome: "recovered"}}}, true},
		"Pending":   {"the outcome is to come", demo.Look{Services: met, Decisions: []web.Decision{{Service: "checkout", Outcome: "pending"}}}, false},
		"Untouched": {"nothing was decided yet", demo.Look{Services: met}, false},
		"Holding": {"the episode is open", demo.Look{
			Services:  []web.Service{{Service: "checkout", State: "met", Episode: "e4"}},
			Decisions: []web.Decision{{Service: "checkout", Outcome: "recovered"}},
		}, false},
		"Denied": {"a person said no", demo.Look{Approvals: []web.Approval{{Service: "checkout", State: "denied"}}}, true},
		"Open":   {"a person is asked", demo.Look{Approvals: []web.Approval{{Service: "checkout", State: "open"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := demo.Ended(tc.look, "checkout"); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConfigIsValid(t *testing.T) {
	text := demo.ConfigText("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4", "os:#1000")
	cfg, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Limits.MaxMode != spec.Auto || cfg.Policies.Path != "" || cfg.Prompts != "" || cfg.Proposer.Provider != "openai" {
		t.Errorf("mode %s, policies %q, prompts %q, proposer %s", cfg.Limits.MaxMode, cfg.Policies.Path, cfg.Prompts, cfg.Proposer.Provider)
	}
	if got := cfg.Approvers["@shop-oncall"]; len(got) != 1 || got[0] != "os:#1000" {
		t.Errorf("approvers = %v", got)
	}
}

func TestEnvironment(t *testing.T) {
	got := demo.Environment([]string{"PATH=/bin", "SETPOINT_CONFIG=x", "OTEL_TRACES_EXPORTER=otlp", "https_proxy=y", "HOME=/h"})
	if diff := cmp.Diff([]string{"PATH=/bin", "HOME=/h"}, got); diff != "" {
		t.Error(diff)
	}
}

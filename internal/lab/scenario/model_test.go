package scenario_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "record evals/cassettes again")

var created = regexp.MustCompile(`"created":\d+`)

// standIn is a rules file behind the API of a model. It tells no time, so that two
// recordings of it are the same bytes.
func standIn(t *testing.T, s scenario.Scenario) string {
	t.Helper()
	data, err := os.ReadFile(s.Rules)
	if err != nil {
		t.Fatal(err)
	}
	book, err := rules.Load(spec.File{Name: s.Rules, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	h := model.Handler(book)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(created.ReplaceAll(answer.Body.Bytes(), []byte(`"created":0`)))
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

const note = "Recorded from the lab's stand-in, a rules file behind the API of a model. It says nothing about any language model."

// kept are the entries of a ledger, without what a real clock writes into the first.
func kept(t *testing.T, into *[]string) func(scenario.Oracles) error {
	t.Helper()
	return func(o scenario.Oracles) error {
		entries, err := o.Ledger.Read(context.Background(), 0, 100_000)
		if err != nil {
			return err
		}
		for _, e := range entries[1:] {
			*into = append(*into, fmt.Sprintf("%s %s %s %s %s", e.Time.Format(time.RFC3339Nano), e.Kind, e.Service, e.Unique, e.Body))
			if e.Kind != ledger.KindProposal {
				continue
			}
			for _, digest := range regexp.MustCompile(`"(?:request|reply)":"([0-9a-f]{64})"`).FindAllStringSubmatch(string(e.Body), -1) {
				blob, err := o.Ledger.Blob(context.Background(), digest[1])
				if err != nil {
					return err
				}
				*into = append(*into, string(blob))
			}
		}
		return nil
	}
}

// A replayed run is the recorded one, entry by entry: what was asked and answered,
// proposed, decided, claimed and measured, with every digest.
func TestAReplayReproducesTheRun(t *testing.T) {
	if testing.Short() {
		t.Skip("plays most of an hour of simulated time three times")
	}
	t.Parallel()
	s := shipped(t, "bad-release")
	s.For = 40 * time.Minute
	dir := t.TempDir()
	run := func(m scenario.Model) (scenario.Score, []string) {
		var entries []string
		score, err := scenario.Run(t.Context(), s, scenario.Options{Proposer: scenario.OpenAI, Seed: s.Seed, Model: m, Inspect: kept(t, &entries)})
		if err != nil {
			t.Fatal(err)
		}
		return score, entries
	}
	const key = "sk-canary-0123456789"
	recorded, want := run(scenario.Model{BaseURL: standIn(t, s), Name: model.Name, Key: key, Record: dir, Note: note})
	if recorded.Kind != scenario.Asked || len(recorded.Actions) != 1 {
		t.Fatalf("the recorded run did nothing: %+v", recorded)
	}
	if n := countOf(want, string(ledger.KindDecision)); n == 0 {
		t.Fatal("the ledger has no decision to compare")
	}
	file, err := os.ReadFile(filepath.Join(dir, "bad-release-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, "127.0.0.1", "Bearer"} {
		if strings.Contains(string(file), secret) {
			t.Errorf("the cassette holds %s", secret)
		}
	}
	for range 2 {
		replayed, got := run(scenario.Model{Replay: dir})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-recorded, +replayed:\n%s", diff)
		}
		recorded.Kind = scenario.Recorded
		if diff := cmp.Diff(recorded, replayed); diff != "" {
			t.Errorf("scores: -recorded, +replayed:\n%s", diff)
		}
	}
}

func countOf(entries []string, kind string) (n int) {
	for _, e := range entries {
		if strings.Contains(e, " "+kind+" ") {
			n++
		}
	}
	return n
}

// Another course of events is no replay, and the error says where they part.
func TestAReplayOfSomethingElseFails(t *testing.T) {
	if testing.Short() {
		t.Skip("plays most of an hour of simulated time twice")
	}
	t.Parallel()
	s := shipped(t, "bad-release")
	s.For = 30 * time.Minute
	dir := t.TempDir()
	o := scenario.Options{Proposer: scenario.OpenAI, Seed: s.Seed, Model: scenario.Model{BaseURL: standIn(t, s), Name: model.Name, Record: dir}}
	if _, err := scenario.Run(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
	s.Faults = slices.Clone(s.Faults)
	s.Faults[0].At += 5 * time.Minute
	o.Model = scenario.Model{Replay: dir}
	_, err := scenario.Run(t.Context(), s, o)
	if err == nil {
		t.Fatal("another course of events was replayed")
	}
	for _, want := range []string{"was not recorded", "the nearest is exchange", "/messages/", "was recorded and not asked for"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nwant %q in it", err, want)
		}
	}
}

// The cassette that ships is played without a network, and is what this version
// asks and answers.
func TestTheShippedCassette(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 90 simulated minutes")
	}
	for _, name := range []string{"bad-release", "poisoned-workers"} {
		t.Run(name, func(t *testing.T) { playShipped(t, shipped(t, name)) })
	}
}

func playShipped(t *testing.T, s scenario.Scenario) {
	const dir = evals + "/cassettes"
	if *update {
		o := scenario.Options{Proposer: scenario.OpenAI, Seed: s.Seed}
		o.Model = scenario.Model{BaseURL: standIn(t, s), Name: model.Name, Record: dir, Note: note}
		if _, err := scenario.Run(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
	}
	if !*update {
		t.Parallel()
	}
	closed := roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	score, err := scenario.Run(t.Context(), s, scenario.Options{
		Proposer: scenario.OpenAI, Seed: s.Seed, Model: scenario.Model{Replay: dir, Transport: closed},
	})
	if err != nil {
		t.Fatalf("%v\nWhere prompts, evidence or documents were changed on purpose, record it again:\n"+
			"  go test ./internal/lab/scenario -run TestTheShippedCassette -update", err)
	}
	if len(score.Wrong) > 0 {
		t.Errorf("the recorded answers do not reach what is right: %q", score.Wrong)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

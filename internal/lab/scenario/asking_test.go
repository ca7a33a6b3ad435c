package scenario_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/cassette"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
)

// A recording in which nobody answered, as an earlier version kept them, is a
// score of nobody when it is played, and says so as the run did.
func TestAReplayOfNoAnswersSaysSo(t *testing.T) {
	if testing.Short() {
		t.Skip("plays half an hour of simulated time twice")
	}
	t.Parallel()
	s := shipped(t, "bad-release")
	s.For = 30 * time.Minute
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "bad-release-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dead := roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	rec, err := cassette.Record(f, cassette.Head{Model: "m", Reply: "json_schema"}, dead)
	if err != nil {
		t.Fatal(err)
	}
	o := scenario.Options{Proposer: scenario.OpenAI, Seed: s.Seed}
	o.Model = scenario.Model{BaseURL: "http://127.0.0.1:1/v1", Name: "m", Transport: rec}
	asked, err := scenario.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	o.Model = scenario.Model{Replay: dir}
	replayed, err := scenario.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if a := replayed.Asked; a.Requests == 0 || a.Answered != 0 || a.Faults["unreachable"] != a.Requests {
		t.Errorf("asked %+v, want requests that nobody answered", a)
	}
	if why := replayed.Unanswered(); !strings.Contains(why, "so the score says nothing of a model (unreachable ") {
		t.Errorf("Unanswered() = %q", why)
	}
	if diff := cmp.Diff(asked.Asked, replayed.Asked); diff != "" {
		t.Errorf("-recorded, +replayed:\n%s", diff)
	}
}

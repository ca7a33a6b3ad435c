package executetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

func post(t *testing.T, a *executetest.Actuator, key, extra string) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"key":%q,"digest":"d","parameters":{"replicas":6}%s}`, key, extra)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/checkout", bytes.NewBufferString(body)))
	return w.Code, w.Body.String()
}

func status(t *testing.T, a *executetest.Actuator, key string) execute.Observation {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/checkout?key="+key, nil))
	return execute.ParseStatus(w.Body.Bytes())
}

// The oracle of the other tests must not forget: what it answered is in the
// file, and a restart knows it.
func TestJournalSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	options := executetest.ActuatorOptions{
		Journal: path, Dedup: true, State: map[string]any{"replicas": 4},
		Now: func() time.Time { return time.Unix(1764417600, 0).UTC() },
	}
	a, err := executetest.NewActuator(options)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := post(t, a, "k1", ""); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	// A write that was torn by a crash is not there.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"key":"k2"`)
	_ = f.Close()
	rs, err := executetest.ReadJournal(path)
	if err != nil || len(rs) != 1 || rs[0].Key != "k1" || !rs[0].Applied || rs[0].Time.IsZero() {
		t.Fatalf("%+v, %v", rs, err)
	}
	a, err = executetest.NewActuator(options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if o := status(t, a, "k1"); !o.KeyKnown || o.Result != execute.Applied || o.State["replicas"] != int64(6) {
		t.Errorf("after the restart: %+v", o)
	}
	if code, _ := post(t, a, "k1", ""); code != http.StatusConflict {
		t.Errorf("a known key is answered %d, want 409", code)
	}
	if n := len(a.Effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
	if rs, err = executetest.ReadJournal(path); err != nil || len(rs) != 2 {
		t.Errorf("the torn line spoilt the next one: %d records, %v", len(rs), err)
	}
}

// Without dedup the actuator does what it is told, twice too: otherwise it
// would hide a double effect.
func TestActuatorCountsDoubleEffects(t *testing.T) {
	applied := 0
	a, err := executetest.NewActuator(executetest.ActuatorOptions{OnApply: func(execute.Envelope) { applied++ }})
	if err != nil {
		t.Fatal(err)
	}
	post(t, a, "k", "")
	post(t, a, "k", "")
	if len(a.Effects()) != 2 || applied != 2 {
		t.Errorf("%d effects in the journal, %d applied, want 2", len(a.Effects()), applied)
	}
}

func TestDryRun(t *testing.T) {
	a, err := executetest.NewActuator(executetest.ActuatorOptions{Dedup: true, State: map[string]any{"replicas": 4}})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := post(t, a, "probe", `,"dryRun":true`)
	second, body := post(t, a, "probe", `,"dryRun":true`)
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if first != 200 || second != 409 || answer["duplicate"] != true {
		t.Errorf("answered %d, then %d %s", first, second, body)
	}
	if diff := cmp.Diff(map[string]any{"replicas": 4}, a.State()); diff != "" || len(a.Effects()) != 0 {
		t.Errorf("a dry run changed the target: %d effects\n%s", len(a.Effects()), diff)
	}
}

func TestUnsigned(t *testing.T) {
	a, err := executetest.NewActuator(executetest.ActuatorOptions{Secret: []byte("s")})
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := post(t, a, "k", ""); code != http.StatusUnauthorized || len(a.Effects()) != 0 {
		t.Errorf("an unsigned request was answered %d with %d effects", code, len(a.Effects()))
	}
	if o := status(t, a, "k"); o.KeyKnown {
		t.Error("a refused request made its key known")
	}
	if executetest.Verify([]byte("s"), execute.Sign([]byte("s"), time.Unix(1, 0), []byte("a")), []byte("b")) {
		t.Error("a signature over other bytes verifies")
	}
}

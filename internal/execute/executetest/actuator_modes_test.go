package executetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// open makes an actuator with four replicas that ends with the test.
func open(t *testing.T, o executetest.ActuatorOptions) *executetest.Actuator {
	t.Helper()
	if o.State == nil {
		o.State = map[string]any{"replicas": 4}
	}
	a, err := executetest.NewActuator(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// serveOne sends one request over a real connection, which can be hung up; 0 is
// no answer.
func serveOne(t *testing.T, h http.Handler, body string) int {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	resp, err := http.Post(srv.URL+"/checkout", "application/json", strings.NewReader(body))
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// fact is what a checker reads of a record.
type fact struct {
	Key, Digest                                 string
	Result                                      execute.Effect
	Applied, Duplicate, Late, Conflict, Foreign bool
	Partial                                     bool
	Of                                          int
}

func facts(rs []executetest.Record) []fact {
	var out []fact
	for _, r := range rs {
		out = append(out, fact{
			Key: r.Key, Digest: r.Digest, Result: r.Result, Applied: r.Applied, Duplicate: r.Duplicate, Late: r.Late,
			Conflict: r.Conflict, Foreign: r.Foreign, Partial: r.Partial, Of: r.Of,
		})
	}
	return out
}

const (
	one     = `{"key":"k","digest":"d","parameters":{"replicas":8}}`
	oneElse = `{"key":"k","digest":"e","parameters":{"replicas":9}}`
)

func TestModes(t *testing.T) {
	taken := fact{Key: "k", Digest: "d", Result: execute.Applied}
	applied, refused := taken, fact{Key: "k", Digest: "d", Result: execute.None}
	applied.Applied = true
	half := applied
	half.Partial = true
	accepted := fact{Key: "k", Digest: "d", Result: execute.None, Late: true}
	cases := map[executetest.Mode]struct {
		reason string
		status int
		want   fact
		state  any
		known  bool
	}{
		executetest.ModeRefuse:            {"nothing is done and nothing is known", 403, refused, 4, false},
		executetest.ModeDropRequest:       {"nothing is done and nothing is said", 0, refused, 4, false},
		executetest.ModeDropReply:         {"done and not said", 0, applied, int64(8), true},
		executetest.ModeLie:               {"said and not done", 200, taken, 4, true},
		executetest.ModePartial:           {"half of the way, and said to be all", 200, half, int64(6), true},
		executetest.ModeRevert:            {"done; what comes later is another record", 200, applied, int64(8), true},
		executetest.ModeDuplicateTolerant: {"a first request is like any other", 200, applied, int64(8), true},
		executetest.ModeLate:              {"accepted, not done, not known", 202, accepted, 4, false},
		executetest.ModeLateDropReply:     {"accepted without a word", 0, accepted, 4, false},
	}
	for mode, tc := range cases {
		t.Run(string(mode), func(t *testing.T) {
			a := open(t, executetest.ActuatorOptions{After: func(time.Duration, func()) {}})
			a.Treat(executetest.Treatment{Mode: mode})
			if got := serveOne(t, a, one); got != tc.status {
				t.Errorf("%s: answered %d, want %d", tc.reason, got, tc.status)
			}
			if diff := cmp.Diff([]fact{tc.want}, facts(a.Journal())); diff != "" {
				t.Errorf("%s: journal, -want +got:\n%s", tc.reason, diff)
			}
			if got := a.State()["replicas"]; got != tc.state {
				t.Errorf("%s: the target has %v, want %v", tc.reason, got, tc.state)
			}
			if o := status(t, a, "k"); o.KeyKnown != tc.known {
				t.Errorf("%s: status %+v", tc.reason, o)
			}
		})
	}
}

func TestPartialOfSeveral(t *testing.T) {
	cases := map[string]struct {
		reason     string
		parameters string
		want       map[string]any
		applied    bool
	}{
		"Half":     {"the first half by name", `{"b":1,"a":2,"c":3,"d":4}`, map[string]any{"a": int64(2), "b": int64(1), "replicas": 4}, true},
		"Odd":      {"never all, nor more than half", `{"b":1,"a":2,"c":3}`, map[string]any{"a": int64(2), "replicas": 4}, true},
		"Word":     {"a word has no half, so nothing is done", `{"version":"2"}`, map[string]any{"replicas": 4}, false},
		"NextTo":   {"nothing is between two neighbours", `{"replicas":5}`, map[string]any{"replicas": 4}, false},
		"Nothing":  {"no parameters, no part", `{}`, map[string]any{"replicas": 4}, false},
		"Downward": {"half of the way down", `{"replicas":1}`, map[string]any{"replicas": int64(2)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var told []execute.Envelope
			a := open(t, executetest.ActuatorOptions{OnApply: func(e execute.Envelope) { told = append(told, e) }})
			a.SetMode(executetest.ModePartial)
			if code := serveOne(t, a, `{"key":"k","digest":"d","parameters":`+tc.parameters+`}`); code != 200 {
				t.Errorf("%s: answered %d", tc.reason, code)
			}
			if diff := cmp.Diff(tc.want, a.State()); diff != "" {
				t.Errorf("%s: state, -want +got:\n%s", tc.reason, diff)
			}
			r := a.Journal()[0]
			if !r.Partial || r.Applied != tc.applied || len(told) != len(a.Effects()) {
				t.Errorf("%s: %+v, told of %d", tc.reason, r, len(told))
			}
		})
	}
}

// The oracle must never hide a second effect, nor take one key for two things.
func TestSameKeyAgain(t *testing.T) {
	first := fact{Key: "k", Digest: "d", Result: execute.Applied, Applied: true}
	again := fact{Key: "k", Digest: "d", Result: execute.Applied, Duplicate: true}
	conflict := fact{Key: "k", Digest: "e", Result: execute.None, Conflict: true}
	cases := map[string]struct {
		reason string
		dedup  bool
		mode   executetest.Mode
		bodies []string
		status []int
		want   []fact
	}{
		"Without":      {"what is told twice is done twice", false, executetest.ModeOK, []string{one, one}, []int{200, 200}, []fact{first, first}},
		"Dedup":        {"a known key is answered 409", true, executetest.ModeOK, []string{one, one}, []int{200, 409}, []fact{first, again}},
		"Tolerant":     {"a known key is answered as the first time", false, executetest.ModeDuplicateTolerant, []string{one, one}, []int{200, 200}, []fact{first, again}},
		"Conflict":     {"another digest is refused", false, executetest.ModeOK, []string{one, oneElse}, []int{200, 422}, []fact{first, conflict}},
		"ConflictThen": {"and binds nothing", false, executetest.ModeOK, []string{one, oneElse, one}, []int{200, 422, 200}, []fact{first, conflict, first}},
		"DedupConflict": {
			"dedup does not make another digest a duplicate", true, executetest.ModeOK,
			[]string{one, oneElse, one}, []int{200, 422, 409}, []fact{first, conflict, again},
		},
		"TolerantConflict": {"nor does tolerance", false, executetest.ModeDuplicateTolerant, []string{one, oneElse}, []int{200, 422}, []fact{first, conflict}},
		"LostConflict": {
			"a key belongs to its first digest even if nothing was done", false, executetest.ModeDropRequest,
			[]string{one, oneElse}, []int{0, 422}, []fact{{Key: "k", Digest: "d", Result: execute.None}, conflict},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := executetest.ActuatorOptions{Journal: filepath.Join(t.TempDir(), "j"), Dedup: tc.dedup}
			// Each request meets an actuator that was just started.
			var rs []executetest.Record
			for i, body := range tc.bodies {
				a := open(t, o)
				a.SetMode(tc.mode)
				if got := serveOne(t, a, body); got != tc.status[i] {
					t.Errorf("%s: request %d answered %d, want %d", tc.reason, i+1, got, tc.status[i])
				}
				rs = a.Journal()
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, facts(rs)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A write that a crash tore is not there, wherever it was torn, and the next
// record is whole.
func TestTornAnywhere(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	a := open(t, executetest.ActuatorOptions{Journal: whole, Dedup: true})
	post(t, a, "k1", "")
	post(t, a, "k2", "")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.IndexByte(data, '\n') + 1
	torn := filepath.Join(dir, "torn")
	for n := last; n <= len(data); n++ {
		if err := os.WriteFile(torn, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want, code := 1, 200
		if n == len(data) {
			want, code = 2, 409
		}
		a := open(t, executetest.ActuatorOptions{Journal: torn, Dedup: true})
		if got := len(a.Journal()); got != want {
			t.Fatalf("cut at byte %d of %d: %d records, want %d", n, len(data), got, want)
		}
		if got, body := post(t, a, "k2", ""); got != code {
			t.Fatalf("cut at byte %d: the key is answered %d %s, want %d", n, got, body, code)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if rs, err := executetest.ReadJournal(torn); err != nil || len(rs) != want+1 {
			t.Fatalf("cut at byte %d: %d records in the file, %v", n, len(rs), err)
		}
	}
}

// What cannot be written is neither done nor said to be.
func TestJournalThatFails(t *testing.T) {
	a := open(t, executetest.ActuatorOptions{Journal: filepath.Join(t.TempDir(), "j")})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if code, body := post(t, a, "k", ""); code != 500 || a.State()["replicas"] != 4 || len(a.Journal()) != 0 {
		t.Errorf("answered %d %s with %v", code, body, a.State())
	}
	if _, err := executetest.NewActuator(executetest.ActuatorOptions{Journal: t.TempDir()}); err == nil {
		t.Error("a folder was taken for a journal")
	}
}

func TestNextOnly(t *testing.T) {
	a := open(t, executetest.ActuatorOptions{})
	a.SetMode(executetest.ModeFailed)
	a.TreatNext(2, executetest.Treatment{Mode: executetest.ModeNoOp})
	var got []execute.Effect
	for i := range 4 {
		post(t, a, fmt.Sprint("k", i), "")
		got = append(got, a.Journal()[i].Result)
	}
	if diff := cmp.Diff([]execute.Effect{execute.NoOp, execute.NoOp, execute.Failed, execute.Failed}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestControl(t *testing.T) {
	cases := map[string]struct {
		reason, method, url, body string
		status                    int
		want                      string
	}{
		"Set":      {"a mode", "PUT", "/control/mode", "lie\n", 200, `"mode":"lie"`},
		"Delay":    {"with its delay", "PUT", "/control/mode?delay=1500ms", "late", 200, `"delaySeconds":1.5`},
		"Next":     {"for some requests", "PUT", "/control/mode?next=3", "hang", 200, `"requests":3`},
		"Get":      {"what it is", "GET", "/control/mode", "", 200, `"mode":"ok"`},
		"Journal":  {"what happened", "GET", "/control/journal", "", 200, `"key":"k"`},
		"Word":     {"a word that is no mode", "PUT", "/control/mode", "sometimes", 400, `unknown word`},
		"NoDelay":  {"a delay that would be ignored", "PUT", "/control/mode?delay=1s", "lie", 400, "has no delay"},
		"BadDelay": {"a delay without unit", "PUT", "/control/mode?delay=3", "late", 400, "missing unit"},
		"Negative": {"a delay into the past", "PUT", "/control/mode?delay=-3s", "late", 400, "is negative"},
		"NoNext":   {"no requests at all", "PUT", "/control/mode?next=0", "lie", 400, "want a number"},
		"Post":     {"not the way", "POST", "/control/mode", "lie", 405, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := open(t, executetest.ActuatorOptions{})
			post(t, a, "k", "")
			w := httptest.NewRecorder()
			a.Control().ServeHTTP(w, httptest.NewRequest(tc.method, tc.url, strings.NewReader(tc.body)))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s: %d %s, want %d with %q", tc.reason, w.Code, w.Body, tc.status, tc.want)
			}
		})
	}
}

// The words that a checker reads are part of the journal's format.
func TestRecordWords(t *testing.T) {
	line, err := json.Marshal(executetest.Record{
		Time: time.Unix(1, 0).UTC(), Late: true, Conflict: true, Foreign: true, Partial: true, Changed: map[string]any{"a": nil},
		Revert: map[string]any{"a": 1}, Due: time.Unix(2, 0).UTC(), Delay: time.Second, Of: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"1970-01-01T00:00:01Z","key":"","digest":"","service":"","action":"","parameters":null,"path":"",` +
		`"remote":"","header":null,"body":"","signed":false,"dryRun":false,"duplicate":false,"result":"","applied":false,` +
		`"late":true,"conflict":true,"foreign":true,"partial":true,"changed":{"a":null},"revert":{"a":1},` +
		`"due":"1970-01-01T00:00:02Z","delay":1000000000,"of":7}`
	if diff := cmp.Diff(want, string(line)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

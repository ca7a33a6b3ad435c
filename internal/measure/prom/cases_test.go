package prom_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// recorded is one answer of a real server.
type recorded struct {
	Status     int
	Headers    map[string]string
	Body       string
	BodyBase64 string `json:"body_base64"`
}

// replay is a file of testdata/promapi: who reported it, and what was answered.
type replay struct {
	ID, Source string
	Response   recorded
	Sequence   []struct{ Response recorded }
}

func (c replay) responses() []recorded {
	if len(c.Sequence) == 0 {
		return []recorded{c.Response}
	}
	var out []recorded
	for _, s := range c.Sequence {
		out = append(out, s.Response)
	}
	return out
}

func readCase(t *testing.T, file string) replay {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c replay
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if c.Source == "" || c.ID != strings.TrimSuffix(filepath.Base(file), ".json") {
		t.Fatalf("%s has no source, or another id", file)
	}
	return c
}

func (r recorded) body(t *testing.T) []byte {
	t.Helper()
	if r.BodyBase64 == "" {
		return []byte(r.Body)
	}
	b, err := base64.StdEncoding.DecodeString(r.BodyBase64)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at finds the instant for which a recorded body answers.
func (r recorded) at() time.Time {
	_, rest, ok := strings.Cut(r.Body, "[17644")
	if !ok {
		return time.Unix(1764400000, 0).UTC()
	}
	number, _, _ := strings.Cut("17644"+rest, ",")
	f, _ := strconv.ParseFloat(number, 64)
	return time.UnixMilli(int64(f * 1000)).UTC()
}

// server answers the kinds of questions in kinds as was recorded, and others as
// a healthy server does. It counts the former.
type server struct {
	*recorded
	t     *testing.T
	kinds []string
	other answers

	mu    sync.Mutex
	asked int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.FormValue("time")
	if k := kind(r.FormValue("query")); !slices.Contains(s.kinds, k) {
		value := map[string]string{"newest": at, "clock": at}[k]
		if v, ok := s.other[k]; ok {
			value = v
		}
		_, _ = fmt.Fprint(w, success(fmt.Sprintf(`{"resultType":"vector","result":[{"metric":{},"value":[%s,%q]}]}`, at, value)))
		return
	}
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	for k, v := range s.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(s.Status)
	_, _ = w.Write(s.body(s.t))
}

// raw is an objective whose own query the recorded answers are to.
func raw(edit ...func(*spec.Objective)) spec.Objective {
	return objective(append([]func(*spec.Objective){func(o *spec.Objective) {
		o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "sum(rate(raw[{{.window}}]))"}}
	}}, edit...)...)
}

// TestPublicCases replays what real servers answered, and wants of each what is
// right to make of it.
func TestPublicCases(t *testing.T) {
	want := map[string][]string{
		"P01-infos-field":                   {"0.0123"},
		"P03-vm-ispartial":                  {"partial"},
		"P05-nan-no-traffic":                {"not-finite"},
		"P07-empty-vector":                  {"no-data"},
		"P09-scalar-result":                 {"0.0007"},
		"P11-422-duplicate-match-group":     {"query-error"},
		"P12-503-timeout":                   {"source-error"},
		"P15-502-html":                      {"source-error"},
		"P17-gzip-without-header":           {"source-error"},
		"P20-float-timestamps":              {"6.1e-05", "0"},
		"P22-flapping-recorded-series":      {"0.9991", "0.42", "0.9991"},
		"P23-error-type-is-a-number-string": {"source-error", "source-error"},
		"P25-truncated-by-limit-warning":    {"partial"},
	}
	details := map[string]string{
		"P11-422-duplicate-match-group":     `found duplicate series for the match group {instance="10.0.0.7:9100"}`,
		"P12-503-timeout":                   "HTTP 503, timeout: query timed out in expression evaluation",
		"P15-502-html":                      `HTTP 502 Bad Gateway with the html page "502 Bad Gateway"`,
		"P17-gzip-without-header":           "gzip without Content-Encoding",
		"P23-error-type-is-a-number-string": "cannot fetch query results from vmstorage nodes",
		"P25-truncated-by-limit-warning":    "warning: results may be truncated due to limit",
	}
	files, err := filepath.Glob("testdata/promapi/*.json")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, want %d (%v)", len(files), len(want), err)
	}
	for _, file := range files {
		c := readCase(t, file)
		t.Run(c.ID, func(t *testing.T) {
			var got, notes []string
			for _, r := range c.responses() {
				s := serve(t, &server{recorded: &r, t: t, kinds: []string{"raw"}}, func(o *prom.Options) {
					o.OnNote = func(_, text string) { notes = append(notes, text) }
				})
				m := s.Measure(t.Context(), queries(raw(), r.at()))[0]
				t.Logf("%s: %+v", c.Source, m)
				if m.Known() {
					got = append(got, strconv.FormatFloat(m.ErrorRatio, 'g', -1, 64))
				} else {
					got = append(got, string(m.Reason))
				}
				if strings.ContainsAny(m.Detail, "\x1f<\n") || !strings.Contains(m.Detail, details[c.ID]) {
					t.Errorf("detail %q, want %q and no bytes of the body", m.Detail, details[c.ID])
				}
			}
			if diff := cmp.Diff(want[c.ID], got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.Source, diff)
			}
			if wanted := c.ID == "P01-infos-field"; wanted != (len(notes) == 1) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// An empty answer is zero errors only beside a total with traffic, and only
// where the document says so.
func TestEmptyVectorCases(t *testing.T) {
	r := readCase(t, "testdata/promapi/P07-empty-vector.json").responses()[0]
	cases := map[string]struct {
		reason string
		empty  []string
		zero   bool
		want   measure.Reason
	}{
		"bad, said so":     {"there is traffic, and an absent bad is zero", []string{"bad"}, true, ""},
		"bad, not said":    {"it could be a renamed metric", []string{"bad"}, false, measure.NoData},
		"total":            {"nothing is never zero", []string{"total"}, true, measure.NoData},
		"both":             {"nothing is never zero", []string{"bad", "total"}, true, measure.NoData},
		"newest":           {"nothing is fresh", []string{"newest"}, true, measure.NoData},
		"bad and newest":   {"nothing is fresh", []string{"bad", "newest"}, true, measure.NoData},
		"no series at all": {"it answers nothing whatever is asked", []string{"bad", "total", "newest", "resets"}, true, measure.NoData},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &server{recorded: &r, t: t, kinds: tc.empty, other: answers{"bad": "3", "total": "100", "resets": "0"}})
			o := objective(func(o *spec.Objective) {
				o.Indicator = spec.Indicator{
					Bad: &spec.Query{Expr: "bad", Counter: true}, Total: &spec.Query{Expr: "total", Counter: true}, AbsentBadZero: tc.zero,
				}
			})
			m := s.Measure(t.Context(), queries(o, r.at()))[0]
			if m.Reason != tc.want || m.ErrorRatio != 0 || m.Known() && m.Total != 100 {
				t.Errorf("%s: got %+v, want %q", tc.reason, m, tc.want)
			}
		})
	}
}

// A broken query is not sent again before it may have changed, and an
// overloaded source is left alone.
func TestNotRepeatedCases(t *testing.T) {
	for id, want := range map[string]struct {
		reason string
		kinds  []string
		calls  []int // after each pass, 31 s apart
	}{
		"P11-422-duplicate-match-group": {"not faster than the loop, and more slowly each time", []string{"raw"}, []int{1, 2, 2, 3, 3, 3, 3, 4}},
		"P12-503-timeout":               {"left alone after three in a row, then asked one trivial query", []string{"raw", "newest", "clock"}, []int{2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		t.Run(id, func(t *testing.T) {
			r := readCase(t, "testdata/promapi/"+id+".json").responses()[0]
			clock := r.at()
			h := &server{recorded: &r, t: t, kinds: want.kinds}
			s := serve(t, h, func(o *prom.Options) {
				o.MaxConcurrency, o.Now, o.Rand = 1, func() time.Time { return clock }, func() float64 { return 0.5 }
			})
			var got []int
			for range want.calls {
				s.Measure(t.Context(), queries(raw(), clock))
				got = append(got, h.asked)
				clock = clock.Add(31 * time.Second)
			}
			if diff := cmp.Diff(want.calls, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", want.reason, diff)
			}
		})
	}
}

// TestFlappingCases reads the recorded series as Prometheus stores it, whatever
// instant is asked, and what the loop makes of it: nothing is known while two
// rules write one series.
func TestFlappingCases(t *testing.T) {
	steps := readCase(t, "testdata/promapi/P22-flapping-recorded-series.json").responses()
	o := raw(func(o *spec.Objective) {
		o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "job:availability", Recorded: true}, RawSuccess: true}
		o.BurnRates = nil
	})
	svc := spec.Service{Name: "checkout", Objectives: []spec.Objective{o}}
	low, high := math.Inf(1), math.Inf(-1)
	var r recorded
	other := answers{}
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		(&server{recorded: &r, t: t, kinds: []string{"job"}, other: other}).ServeHTTP(w, req)
	}), func(o *prom.Options) { o.MaxConcurrency = 1 })
	var got []string
	for _, r = range steps {
		_, text, _ := strings.Cut(r.Body[strings.Index(r.Body, "value"):], `,"`)
		v, err := strconv.ParseFloat(strings.TrimRight(text, `"]}`), 64)
		if err != nil {
			t.Fatal(err)
		}
		low, high = min(low, v), max(high, v)
		other["low"], other["high"] = fmt.Sprint(low), fmt.Sprint(high)
		ms := s.Measure(t.Context(), measure.Pass(svc, r.at()))
		set := measure.NewSet(ms)
		m := set.Get(measure.ID{Service: "checkout", Objective: o.ID, Window: judge, At: r.at()})
		if math.Abs(m.Low-(1-high)) > 1e-9 || math.Abs(m.High-(1-low)) > 1e-9 || math.Abs(m.ErrorRatio-(1-v)) > 1e-9 {
			t.Errorf("got %+v, want a ratio of %g between %g and %g", m, 1-v, 1-high, 1-low)
		}
		a := compare.Assess(svc, set, compare.Limits{MaxSampleAge: map[string]time.Duration{"main": time.Minute, "": time.Minute}}, r.at())
		got = append(got, string(a.State)+" "+string(a.Reason))
	}
	want := []string{"met ", "unknown unstable", "unknown unstable"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const judge = 5 * time.Minute

// answers is a server which answers each kind of question with a body of its
// own.
type answers map[string]string

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := a[kind(r.FormValue("query"))]
	if !ok {
		http.Error(w, "unexpected query "+r.FormValue("query"), http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body))
}

// kind tells what a query asks for.
func kind(query string) string {
	for mark, kind := range map[string]string{
		"resets(": "resets", "max(timestamp(": "newest", "max by (service) (timestamp(": "newest", "min_over_time(timestamp(": "oldest",
		"min_over_time(job": "low", "max_over_time(job": "high", "time()": "clock",
	} {
		if strings.Contains(query, mark) {
			return kind
		}
	}
	for _, kind := range []string{"good", "bad", "total", "raw", "job"} {
		if strings.Contains(query, kind) {
			return kind
		}
	}
	return query
}

// healthy answers 75 good of 100.
func healthy() answers {
	return answers{
		"good": vector("75"), "total": vector("100"), "newest": vector(seconds(now)), "resets": vector("0"), "clock": scalar(now),
	}
}

// vector is a successful answer with one series for each value.
func vector(values ...string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf(`{"metric":{"pod":"%d"},"value":[%d,%q]}`, i, now.Unix(), v)
	}
	return success(`{"resultType":"vector","result":[` + strings.Join(parts, ",") + `]}`)
}

func success(data string) string { return `{"status":"success","data":` + data + `}` }

// scalar is the answer to time() of a server whose clock shows that.
func scalar(at time.Time) string {
	return success(fmt.Sprintf(`{"resultType":"scalar","result":[%s,%q]}`, seconds(at), seconds(at)))
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func serve(t testing.TB, h http.Handler, edit ...func(*prom.Options)) *prom.Source {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return source(t, server.URL, edit...)
}

func source(t testing.TB, url string, edit ...func(*prom.Options)) *prom.Source {
	t.Helper()
	opts := prom.Options{Name: "main", URL: url, HTTP: config.DefaultHTTPClientConfig, QueriesPerSecond: 1e5}
	for _, e := range edit {
		e(&opts)
	}
	s, err := prom.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// objective asks for good and total, which no other expression shares.
func objective(edit ...func(*spec.Objective)) spec.Objective {
	o := spec.Objective{
		ID: "availability", Target: 0.99, Window: time.Hour, JudgeWindow: judge,
		Indicator: spec.Indicator{
			Good:  &spec.Query{Expr: "good", Counter: true},
			Total: &spec.Query{Expr: "total", Counter: true},
		},
	}
	for _, e := range edit {
		e(&o)
	}
	return o
}

func queries(o spec.Objective, at time.Time) []measure.Query {
	return measure.At("checkout", o, o.JudgeWindow, at)
}

func one(t testing.TB, s *prom.Source, o spec.Objective) measure.Measurement {
	t.Helper()
	ms := s.Measure(t.Context(), queries(o, now))
	if len(ms) != 1 {
		t.Fatalf("%d measurements for one query", len(ms))
	}
	return ms[0]
}

func TestMeasureEvents(t *testing.T) {
	cases := map[string]struct {
		reason string
		change answers
		want   measure.Reason
		ratio  float64
	}{
		"good and total": {"the ratio is bad / total", nil, "", 0.25},
		"NaN":            {"compares with nothing", answers{"good": vector("NaN")}, measure.NotFinite, 0},
		"+Inf":           {"no count", answers{"total": vector("+Inf")}, measure.NotFinite, 0},
		"1e400":          {"a number that cannot be held", answers{"total": vector("1e400")}, measure.NotFinite, 0},
		"-0":             {"no counter gives it", answers{"good": vector("-0")}, measure.OutOfRange, 0},
		"empty":          {"no data is neither 0 nor 100 %", answers{"total": vector()}, measure.NoData, 0},
		"no fresh one":   {"whatever increase says, nothing fresh is there", answers{"newest": vector()}, measure.NoData, 0},
		"several":        {"never the first of a list", answers{"good": vector("1", "100")}, measure.SeveralSeries, 0},
		"good > total":   {"extrapolation at the edges, within 1 %", answers{"good": vector("100.9")}, "", 0},
		"good >> total":  {"they do not belong together", answers{"good": vector("101.1")}, measure.OutOfRange, 0},
		"partial":        {"the fault of the source is told first", answers{"total": vector(), "good": strings.Replace(vector("75"), `"data"`, `"isPartial":true,"data"`, 1)}, measure.Partial, 0},
		"scalar":         {"one sample", answers{"good": success(fmt.Sprintf(`{"resultType":"scalar","result":[%d,"75"]}`, now.Unix()))}, "", 0.25},
		"cached":         {"an old answer", answers{"good": strings.ReplaceAll(vector("75"), strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.Unix()-3600, 10))}, measure.SourceError, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := healthy()
			for k, v := range tc.change {
				a[k] = v
			}
			m := one(t, serve(t, a), objective())
			if m.Reason != tc.want || m.ErrorRatio != tc.ratio || m.Source != "main" || (m.Reason == "") != (m.Detail == "") {
				t.Errorf("%s: got %+v, want %q and %g", tc.reason, m, tc.want, tc.ratio)
			}
		})
	}
}

// The groups of a grouped objective are of the source, too.
func TestGroupsNameTheirSource(t *testing.T) {
	a := healthy()
	a["newest"] = success(fmt.Sprintf(`{"resultType":"vector","result":[{"metric":{"pod":"0"},"value":[%d,%q]}]}`, now.Unix(), seconds(now)))
	by := "{{.window}}])) by (pod)"
	m := one(t, serve(t, answersOf(a)), objective(func(o *spec.Objective) {
		o.GroupBy = []string{"pod"}
		o.Indicator.Good = &spec.Query{Expr: "sum(increase(good[" + by}
		o.Indicator.Total = &spec.Query{Expr: "sum(increase(total[" + by}
	}))
	if len(m.Groups) != 1 || m.Groups[0].Source != "main" || m.Groups[0].ErrorRatio != 0.25 {
		t.Errorf("got %+v", m)
	}
}

// answersOf takes any timestamp query for one of the newest sample.
func answersOf(a answers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "timestamp(") {
			_, _ = w.Write([]byte(a["newest"]))
			return
		}
		a.ServeHTTP(w, r)
	})
}

func TestWhatIsSent(t *testing.T) {
	var mu sync.Mutex
	var got []string
	a := healthy()
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, strings.Join([]string{
			r.Method, r.URL.Path, r.FormValue("time"), r.FormValue("timeout"), r.FormValue("partial_response"), r.Header.Get("User-Agent"),
		}, " "))
		mu.Unlock()
		a.ServeHTTP(w, r)
	}), func(o *prom.Options) {
		o.Params = map[string]string{"partial_response": "false"}
		o.URL += "/prefix/"
		o.Timeout = 90 * time.Second
	})
	at := now.Add(781 * time.Millisecond)
	s.Measure(t.Context(), queries(objective(), at))
	want := "POST /prefix/api/v1/query 1772366400.781 1m30s false setpoint"
	if len(got) != 4 || got[0] != want {
		t.Errorf("got %q, want 4 times %q", got, want)
	}
}

// A proxy that lets only reading through is asked with GET from then on.
func TestOnlyReading(t *testing.T) {
	var posts, gets int
	var mu sync.Mutex
	a := healthy()
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			posts++
			http.Error(w, "read only", http.StatusMethodNotAllowed)
			return
		}
		gets++
		a.ServeHTTP(w, r)
	}), func(o *prom.Options) { o.MaxConcurrency = 1 })
	if m := one(t, s, objective()); m.ErrorRatio != 0.25 || posts != 1 || gets != 4 {
		t.Errorf("%+v after %d posts and %d gets, want 1 and 4", m, posts, gets)
	}
}

func TestEqualExpressionsAreAskedOnce(t *testing.T) {
	var results sync.Map
	server := &fleetServer{}
	s := serve(t, server, func(o *prom.Options) {
		o.MaxConcurrency = 8
		o.OnQuery = func(source, result string) { results.Store(source+" "+result, true) }
	})
	qs := slices.Repeat(fleetQueries(3)(now), 20)
	ms := s.Measure(t.Context(), qs)
	for i, m := range ms {
		if m.ID != qs[i].ID || m.ErrorRatio != 0.01 {
			t.Errorf("answer %d is %+v", i, m)
		}
	}
	if n := server.calls(); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
	if _, ok := results.Load("main ok"); !ok {
		t.Error("the metrics hook was not told")
	}
}

func TestMeasureWithoutQueries(t *testing.T) {
	if ms := serve(t, http.NotFoundHandler()).Measure(t.Context(), nil); len(ms) != 0 {
		t.Errorf("got %v", ms)
	}
}

func TestNotesAreToldOnce(t *testing.T) {
	var got []string
	var mu sync.Mutex
	a := healthy()
	a["good"] = strings.Replace(vector("75"), `"data"`, `"infos":["PromQL info: \u001bno counter (1:10)"],"warnings":["PromQL warning: mixed (3:4)"],"data"`, 1)
	a["total"] = strings.Replace(vector("100"), `"data"`, `"infos":["PromQL info: \u001bno counter (7:1)"],"data"`, 1)
	s := serve(t, a, func(o *prom.Options) {
		o.OnNote = func(source, text string) {
			mu.Lock()
			got = append(got, source+": "+text)
			mu.Unlock()
		}
		o.MaxConcurrency = 1
	})
	for range 3 {
		if m := one(t, s, objective()); !m.Known() {
			t.Fatalf("a note stops a measurement: %+v", m)
		}
	}
	want := []string{"main: PromQL info: no counter", "main: PromQL warning: mixed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A hostile source makes up any number of them.
	n := 0
	s = serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprint(w, strings.Replace(vector("1"), `"data"`, fmt.Sprintf(`"infos":["x%d","%s"],"data"`, n, strings.Repeat("y", n)), 1))
	}), func(o *prom.Options) { o.OnNote = func(_, text string) { got = append(got, text) } })
	got = nil
	for range 500 {
		s.Ask(t.Context(), "x", now)
	}
	if len(got) != 200 {
		t.Errorf("%d notes were told, want 200 at most", len(got))
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		opts   prom.Options
		want   string
	}{
		"no scheme":  {"not http", prom.Options{Name: "main", URL: "localhost:9090"}, "url is not http"},
		"broken url": {"no password in the message", prom.Options{Name: "main", URL: "http://u:hunter2@[::1"}, "url is not http"},
		"two auths": {"which one?", prom.Options{Name: "main", URL: "http://localhost", HTTP: config.HTTPClientConfig{
			BasicAuth: &config.BasicAuth{}, Authorization: &config.Authorization{Credentials: "x"},
		}}, "http:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := prom.New(tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// answers is a server which answers each expression with a body of its own.
type answers map[string]string

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := a[r.FormValue("query")]
	if !ok {
		http.Error(w, "unexpected query "+r.FormValue("query"), http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body))
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

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func serve(t *testing.T, h http.Handler, edit ...func(*prom.Options)) *prom.Source {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return source(t, server.URL, edit...)
}

func source(t *testing.T, url string, edit ...func(*prom.Options)) *prom.Source {
	t.Helper()
	opts := prom.Options{Name: "main", URL: url, HTTP: config.DefaultHTTPClientConfig, QueriesPerSecond: 10000}
	for _, e := range edit {
		e(&opts)
	}
	s, err := prom.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func query() measure.Query {
	return measure.Query{
		ID:   measure.ID{Service: "checkout", Objective: "availability", Window: 5 * time.Minute, At: now},
		Good: "good", Total: "total", SampleTime: "newest",
	}
}

func one(t *testing.T, s *prom.Source, q measure.Query) measure.Measurement {
	t.Helper()
	ms := s.Measure(t.Context(), []measure.Query{q})
	if len(ms) != 1 {
		t.Fatalf("%d measurements for one query", len(ms))
	}
	return ms[0]
}

func TestMeasureEvents(t *testing.T) {
	newest := now.Add(-7 * time.Second)
	known := func(good, total, ratio float64) measure.Measurement {
		return measure.Measurement{Good: good, Total: total, HasEvents: true, ErrorRatio: ratio, SampleAt: newest}
	}
	unknown := func(r measure.Reason) measure.Measurement {
		return measure.Measurement{Reason: r, SampleAt: newest}
	}
	noTime := func(r measure.Reason) measure.Measurement { return measure.Measurement{Reason: r} }
	set := func(pairs ...string) func(answers, *measure.Query) {
		return func(a answers, _ *measure.Query) {
			for i := 0; i < len(pairs); i += 2 {
				a[pairs[i]] = pairs[i+1]
			}
		}
	}
	bad := func(body string) func(answers, *measure.Query) {
		return func(a answers, q *measure.Query) { q.Good, q.Bad, a["bad"] = "", "bad", body }
	}
	raw := func(body string, good bool) func(answers, *measure.Query) {
		return func(a answers, q *measure.Query) {
			q.Good, q.Total, q.Raw, q.RawSuccess, a["raw"] = "", "", "raw", good, body
		}
	}
	absentZero := func(_ answers, q *measure.Query) { q.AbsentBadZero = true }
	cases := map[string]struct {
		reason string
		edits  []func(answers, *measure.Query)
		want   measure.Measurement
	}{
		"good and total":       {reason: "the ratio is bad / total", want: known(75, 100, 0.25)},
		"bad and total":        {"good is what is not bad", []func(answers, *measure.Query){bad(vector("25"))}, known(75, 100, 0.25)},
		"scalar":               {"a finite scalar is one sample", []func(answers, *measure.Query){set("good", success(fmt.Sprintf(`{"resultType":"scalar","result":[%d,"75"]}`, now.Unix())))}, known(75, 100, 0.25)},
		"no events":            {"known, without a ratio", []func(answers, *measure.Query){set("good", vector("0"), "total", vector("0"))}, known(0, 0, 0)},
		"no events, no good":   {"where nothing happened nothing was good either", []func(answers, *measure.Query){set("good", vector(), "total", vector("0"))}, known(0, 0, 0)},
		"total empty":          {"no data is neither 0 nor 100 %", []func(answers, *measure.Query){set("total", vector())}, unknown(measure.NoData)},
		"good empty":           {"could be a renamed metric", []func(answers, *measure.Query){set("good", vector())}, unknown(measure.NoData)},
		"bad empty":            {"could be a renamed metric", []func(answers, *measure.Query){bad(vector())}, unknown(measure.NoData)},
		"bad empty, zero":      {"the document declares an absent bad as zero", []func(answers, *measure.Query){bad(vector()), absentZero}, known(100, 100, 0)},
		"good empty, zero":     {"a good that vanished is no outage: the flag is about bad only", []func(answers, *measure.Query){set("good", vector()), absentZero}, unknown(measure.NoData)},
		"both empty, zero":     {"it never makes an absent total zero", []func(answers, *measure.Query){bad(vector()), set("total", vector()), absentZero}, unknown(measure.NoData)},
		"no sample":            {"whatever increase says, nothing fresh is there", []func(answers, *measure.Query){set("newest", vector())}, noTime(measure.NoData)},
		"sample time is NaN":   {"no time", []func(answers, *measure.Query){set("newest", vector("NaN"))}, noTime(measure.NotFinite)},
		"sample time is 0":     {"no time", []func(answers, *measure.Query){set("newest", vector("0"))}, noTime(measure.NotFinite)},
		"sample time is huge":  {"no time", []func(answers, *measure.Query){set("newest", vector("1e30"))}, noTime(measure.NotFinite)},
		"NaN":                  {"compares with nothing", []func(answers, *measure.Query){set("good", vector("NaN"))}, unknown(measure.NotFinite)},
		"+Inf":                 {"no count", []func(answers, *measure.Query){set("total", vector("+Inf"))}, unknown(measure.NotFinite)},
		"-Inf":                 {"no count", []func(answers, *measure.Query){set("total", vector("-Inf"))}, unknown(measure.NotFinite)},
		"subnormal":            {"dividing by it overflows", []func(answers, *measure.Query){set("total", vector("5e-324"))}, unknown(measure.NotFinite)},
		"-0":                   {"no counter gives it", []func(answers, *measure.Query){set("good", vector("-0"))}, unknown(measure.OutOfRange)},
		"negative":             {"a negative count", []func(answers, *measure.Query){set("total", vector("-5"))}, unknown(measure.OutOfRange)},
		"1e400":                {"a number that cannot be held", []func(answers, *measure.Query){set("total", vector("1e400"))}, unknown(measure.SourceError)},
		"word":                 {"no number", []func(answers, *measure.Query){set("total", vector("lots"))}, unknown(measure.SourceError)},
		"several series":       {"never the first of a list", []func(answers, *measure.Query){set("good", vector("1", "100"))}, unknown(measure.SeveralSeries)},
		"matrix":               {"not one number", []func(answers, *measure.Query){set("good", success(`{"resultType":"matrix","result":[]}`))}, unknown(measure.NotAVector)},
		"string":               {"not a number", []func(answers, *measure.Query){set("good", success(`{"resultType":"string","result":[1,"75"]}`))}, unknown(measure.NotAVector)},
		"native histogram":     {"not one number", []func(answers, *measure.Query){set("good", success(fmt.Sprintf(`{"resultType":"vector","result":[{"metric":{},"histogram":[%d,{"count":"1","sum":"1","buckets":[[0,"1","2","1"]]}]}]}`, now.Unix())))}, unknown(measure.NotAVector)},
		"unknown type":         {"a type of the future", []func(answers, *measure.Query){set("good", success(`{"resultType":"tensor","result":[]}`))}, unknown(measure.SourceError)},
		"no data key":          {"success without data", []func(answers, *measure.Query){set("good", `{"status":"success"}`)}, unknown(measure.SourceError)},
		"status is odd":        {"neither success nor error", []func(answers, *measure.Query){set("good", strings.Replace(vector("75"), "success", "fine", 1))}, unknown(measure.SourceError)},
		"HTML":                 {"a proxy's page with 200", []func(answers, *measure.Query){set("good", "<html>")}, unknown(measure.SourceError)},
		"truncated":            {"half an answer", []func(answers, *measure.Query){set("good", vector("75")[:40])}, unknown(measure.SourceError)},
		"two answers":          {"trailing bytes", []func(answers, *measure.Query){set("good", vector("75")+vector("75"))}, unknown(measure.SourceError)},
		"isPartial in total":   {"incomplete", []func(answers, *measure.Query){set("total", strings.Replace(vector("100"), `"data"`, `"isPartial":true,"data"`, 1))}, unknown(measure.Partial)},
		"isPartial is a word":  {"only a plain false is whole", []func(answers, *measure.Query){set("total", strings.Replace(vector("100"), `"data"`, `"isPartial":"yes","data"`, 1))}, unknown(measure.Partial)},
		"isPartial is false":   {"whole", []func(answers, *measure.Query){set("total", strings.Replace(vector("100"), `"data"`, `"isPartial":false,"data"`, 1))}, known(75, 100, 0.25)},
		"warning":              {"some store did not answer", []func(answers, *measure.Query){set("total", strings.Replace(vector("100"), `"data"`, `"warnings":["no store matched"],"data"`, 1))}, unknown(measure.Partial)},
		"warning on nothing":   {"an empty answer that is partial is no proof of no data", []func(answers, *measure.Query){set("total", strings.Replace(vector(), `"data"`, `"warnings":["no store matched"],"data"`, 1))}, unknown(measure.Partial)},
		"marker inside":        {"a partial answer that quotes an annotation stays partial", []func(answers, *measure.Query){set("total", strings.Replace(vector("100"), `"data"`, `"warnings":["store a: PromQL info: x"],"data"`, 1))}, unknown(measure.Partial)},
		"good exceeds by 1 %":  {"extrapolation at the edges", []func(answers, *measure.Query){set("good", vector("100.9"))}, known(100, 100, 0)},
		"good exceeds by more": {"good and total do not belong together", []func(answers, *measure.Query){set("good", vector("101.1"))}, unknown(measure.OutOfRange)},
		"bad exceeds by 1 %":   {"extrapolation at the edges", []func(answers, *measure.Query){bad(vector("100.9"))}, known(0, 100, 1)},
		"good without total":   {"good of nothing", []func(answers, *measure.Query){set("total", vector("0"))}, unknown(measure.OutOfRange)},
		"another instant":      {"a cache replays an old answer", []func(answers, *measure.Query){set("good", strings.ReplaceAll(vector("75"), strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.Unix()-3600, 10)))}, unknown(measure.SourceError)},
		"source before query":  {"where the source fails the rest proves nothing", []func(answers, *measure.Query){set("total", vector(), "good", "<html>")}, unknown(measure.SourceError)},
		"raw":                  {"a share of bad events", []func(answers, *measure.Query){raw(vector("0.1"), false)}, measure.Measurement{ErrorRatio: 0.1, SampleAt: newest}},
		"raw success":          {"a share of good events", []func(answers, *measure.Query){raw(vector("0.75"), true)}, measure.Measurement{ErrorRatio: 0.25, SampleAt: newest}},
		"raw slightly above":   {"clamped inside 1 %", []func(answers, *measure.Query){raw(vector("1.000091"), true)}, measure.Measurement{SampleAt: newest}},
		"raw slightly below":   {"clamped inside 1 %", []func(answers, *measure.Query){raw(vector("-0.00009"), false)}, measure.Measurement{SampleAt: newest}},
		"raw in percent":       {"no ratio", []func(answers, *measure.Query){raw(vector("99.5"), true)}, unknown(measure.OutOfRange)},
		"refused":              {"never asked", []func(answers, *measure.Query){func(_ answers, q *measure.Query) { q.Refused = "two sources" }}, noTime(measure.QueryError)},
		"no sample time":       {"nothing tells the age", []func(answers, *measure.Query){func(_ answers, q *measure.Query) { q.SampleTime = "" }}, noTime(measure.QueryError)},
		"no part":              {"a total alone has no ratio", []func(answers, *measure.Query){func(_ answers, q *measure.Query) { q.Good = "" }}, noTime(measure.QueryError)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := answers{"good": vector("75"), "total": vector("100"), "newest": vector(seconds(newest))}
			q := query()
			for _, edit := range tc.edits {
				edit(a, &q)
			}
			got := one(t, serve(t, a), q)
			if (got.Reason != "") != (got.Detail != "") {
				t.Errorf("reason %q with detail %q", got.Reason, got.Detail)
			}
			want := tc.want
			want.ID, want.Source, want.Detail = q.ID, "main", got.Detail
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tc.reason, diff, got.Detail)
			}
		})
	}
}

func TestMeasureTotalOnly(t *testing.T) {
	first := now.Add(-20 * time.Minute)
	cases := map[string]struct {
		reason, total string
		want          measure.Measurement
	}{
		"covered":     {"a value is all that is needed; the first sample is not asked", vector("5"), measure.Measurement{Total: 5, HasEvents: true}},
		"no events":   {"zero is a value", vector("0"), measure.Measurement{HasEvents: true}},
		"not covered": {"then the first sample tells how long", vector(), measure.Measurement{Reason: measure.NoData, FirstAt: first}},
		"broken":      {"then nothing is known", "<html>", measure.Measurement{Reason: measure.SourceError}},
		"negative":    {"no count", vector("-1"), measure.Measurement{Reason: measure.OutOfRange}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := query()
			q.ID.TotalOnly, q.Good, q.SampleTime, q.FirstSample = true, "", "", "first"
			a := answers{"total": tc.total}
			if !tc.want.FirstAt.IsZero() {
				a["first"] = vector(seconds(first))
			}
			got := one(t, serve(t, a), q)
			want := tc.want
			want.ID, want.Source, want.Detail = q.ID, "main", got.Detail
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParamsAreSent(t *testing.T) {
	var got sync.Map
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store("partial", r.FormValue("partial_response"))
		got.Store("time", r.FormValue("time"))
		_, _ = w.Write([]byte(vector("1")))
	}), func(o *prom.Options) { o.Params = map[string]string{"partial_response": "false"} })
	one(t, s, query())
	if v, _ := got.Load("partial"); v != "false" {
		t.Errorf("partial_response %q, want false", v)
	}
	if v, _ := got.Load("time"); v != strconv.FormatInt(now.Unix(), 10) {
		t.Errorf("time %q, want %d", v, now.Unix())
	}
}

func TestEqualExpressionsAreAskedOnce(t *testing.T) {
	var calls atomic.Int32
	var results sync.Map
	a := answers{"good": vector("75"), "total": vector("100"), "newest": vector(seconds(now))}
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		a.ServeHTTP(w, r)
	}), func(o *prom.Options) {
		o.MaxConcurrency = 8
		o.OnQuery = func(source, result string) { results.Store(source+" "+result, true) }
	})
	var qs []measure.Query
	for i := range 20 {
		q := query()
		q.ID.Window = time.Duration(20-i) * time.Minute
		qs = append(qs, q)
	}
	ms := s.Measure(t.Context(), qs)
	for i, m := range ms {
		if m.ID != qs[i].ID || m.ErrorRatio != 0.25 {
			t.Errorf("answer %d is %+v", i, m)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls, want 3", calls.Load())
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

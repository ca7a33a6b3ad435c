package prom_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// start is far from the real clock, so that a use of it shows.
var start = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// open gives an engine whose clock stands at start.
func open(t *testing.T) *prom.Engine {
	t.Helper()
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func ingest(t *testing.T, e *prom.Engine, at time.Time, job string, g prometheus.Gatherer) {
	t.Helper()
	if err := e.Ingest(at, job, g); err != nil {
		t.Fatal(err)
	}
}

// gauges gives one gauge with a value for each queue.
func gauges(values map[string]float64) *prometheus.Registry {
	r := prometheus.NewRegistry()
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "depth"}, []string{"queue"})
	r.MustRegister(v)
	for name, x := range values {
		v.WithLabelValues(name).Set(x)
	}
	return r
}

func client(t *testing.T, e *prom.Engine) v1.API {
	t.Helper()
	s := httptest.NewServer(e.Handler())
	t.Cleanup(s.Close)
	c, err := api.NewClient(api.Config{Address: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return v1.NewAPI(c)
}

// TestClient decodes every kind of answer with Prometheus's own client.
func TestClient(t *testing.T) {
	e := open(t)
	for i := range 5 {
		ingest(t, e, start.Add(time.Duration(i)*time.Second), "a", gauges(map[string]float64{"x": float64(i), "y": 0.5}))
	}
	c := client(t, e)
	at := start.Add(4 * time.Second)
	cases := map[string]struct {
		reason, query, want string
		warnings, infos     int
	}{
		"Scalar":    {reason: "a number", query: "1.5", want: "scalar: 1.5 @[4102444804]"},
		"NaN":       {reason: "JSON has no NaN, so values are text", query: "NaN", want: "scalar: NaN @[4102444804]"},
		"Infinite":  {reason: "the sign is written", query: "-1/0", want: "scalar: -Inf @[4102444804]"},
		"Tiny":      {reason: "no digits get lost", query: "6.1e-9", want: "scalar: 0.0000000061 @[4102444804]"},
		"Empty":     {reason: "nothing is an empty list", query: "nosuch", want: ""},
		"Vector":    {reason: "labels and value", query: `depth{queue="x"}`, want: `depth{job="a", queue="x"} => 4 @[4102444804]`},
		"Aggregate": {reason: "no labels are an empty object", query: `sum(depth)`, want: `{} => 4.5 @[4102444804]`},
		"Matrix":    {reason: "a range gives samples with their times", query: `depth{queue="x"}[2s]`, want: "depth{job=\"a\", queue=\"x\"} =>\n3 @[4102444803]\n4 @[4102444804]"},
		"At":        {reason: "the modifier is on", query: `depth{queue="x"} @ 4102444801`, want: `depth{job="a", queue="x"} => 1 @[4102444804]`},
		"Info":      {reason: "notes of the engine come along", query: `sum(rate(depth{queue="x"}[3s]))`, want: `{} => 1 @[4102444804]`, infos: 1},
		"Warning":   {reason: "notes of the engine come along", query: `quantile(2, depth)`, want: `{} => +Inf @[4102444804]`, warnings: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, warnings, infos, err := c.Query(t.Context(), tc.query, at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, v.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(warnings) != tc.warnings || len(infos) != tc.infos {
				t.Errorf("%s: warnings %q, infos %q, want %d and %d", tc.reason, warnings, infos, tc.warnings, tc.infos)
			}
		})
	}
	t.Run("Range", func(t *testing.T) {
		v, _, _, err := c.QueryRange(t.Context(), `depth{queue="x"}`, v1.Range{Start: start, End: at, Step: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		want := model.Matrix{{
			Metric: model.Metric{"__name__": "depth", "job": "a", "queue": "x"},
			Values: []model.SamplePair{{Timestamp: 4102444800000, Value: 0}, {Timestamp: 4102444802000, Value: 2}, {Timestamp: 4102444804000, Value: 4}},
		}}
		if diff := cmp.Diff(want, v.(model.Matrix)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWire holds the bytes, which other clients than Go's read.
func TestWire(t *testing.T) {
	e := open(t)
	ingest(t, e, start, "a", gauges(map[string]float64{"x": 4, "<": 1e-7}))
	const (
		vector = `{"status":"success","data":{"resultType":"vector","result":[`
		empty  = `{"status":"success","data":{"resultType":"%","result":[]}}`
	)
	fails := func(kind, words string) string {
		return `{"status":"error","errorType":"` + kind + `","error":"` + words
	}
	x := `{"metric":{"__name__":"depth","job":"a","queue":"x"},"value":[4102444800.500,"4"]}`
	cases := map[string]struct {
		reason, method, path, query string
		status                      int
		// want is the body, or its beginning where it ends in "…".
		want string
	}{
		"FloatTime": {
			reason: "seconds with a fraction", path: "query", query: `query=depth{queue="x"}&time=4102444800.5`,
			status: 200, want: vector + x + `]}}`,
		},
		"RFC3339": {
			reason: "the other form of a time, with an offset", path: "query", query: `query=depth{queue="x"}&time=2100-01-01T01:00:00.5%2B01:00`,
			status: 200, want: vector + x + `]}}`,
		},
		"NoTime": {
			reason: "the engine's own clock, not the machine's", path: "query", query: `query=depth{queue="<"}`,
			status: 200, want: vector + `{"metric":{"__name__":"depth","job":"a","queue":"<"},"value":[4102444800,"1e-07"]}]}}`,
		},
		"Post": {
			reason: "a form in the body", method: "POST", path: "query", query: `query=depth{queue="x"}&time=4102444800.5&lookback_delta=1m`,
			status: 200, want: vector + x + `]}}`,
		},
		"EmptyVector": {reason: "never null", path: "query", query: "query=nosuch", status: 200, want: strings.Replace(empty, "%", "vector", 1)},
		"EmptyMatrix": {
			reason: "never null", path: "query_range", query: "query=nosuch&start=0&end=10&step=5", status: 200, want: strings.Replace(empty, "%", "matrix", 1),
		},
		"RangeScalar": {
			reason: "a range of a scalar is one series without labels", path: "query_range", query: "query=1&start=0&end=10&step=5",
			status: 200, want: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1"],[5,"1"],[10,"1"]]}]}}`,
		},
		"String": {
			reason: "a text", path: "query", query: `query="a"&time=1`,
			status: 200, want: `{"status":"success","data":{"resultType":"string","result":[1,"a"]}}`,
		},
		"ScalarDigits": {
			reason: "a scalar is written without an exponent", path: "query", query: `query=1e-7&time=1`,
			status: 200, want: `{"status":"success","data":{"resultType":"scalar","result":[1,"0.0000001"]}}`,
		},
		"StepDuration": {
			reason: "a step in PromQL's words", method: "POST", path: "query_range", query: "query=1&start=1970-01-01T00:00:00Z&end=60&step=1m",
			status: 200, want: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"1"],[60,"1"]]}]}}`,
		},
		"Limit": {
			reason: "an answer cut short says so", path: "query", query: `query=sort(depth)&limit=1`,
			status: 200, want: vector + `{"metric":{"__name__":"depth","job":"a","queue":"<"},"value":[4102444800,"1e-07"]}]},"warnings":["results truncated due to limit"]}`,
		},
		"LimitRange": {
			reason: "a range is cut likewise", path: "query_range", query: `query=sum+by(job)(depth)&start=4102444800&end=4102444800&step=1&limit=1`,
			status: 200, want: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"job":"a"},"values":[[4102444800,"4.0000001"]]}]}}`,
		},
		"LimitNone": {reason: "zero is no limit", path: "query", query: `query=count(depth)&limit=0`, status: 200, want: vector + `{"metric":{},"value":[4102444800,"2"]}]}}`},
		"Stats": {
			reason: "what it cost, by the engine's own statistics", path: "query", query: `query=count_over_time(depth{queue="x"}[1m])&stats=true`,
			status: 200, want: vector + `{"metric":{"job":"a","queue":"x"},"value":[4102444800,"1"]}],"stats":{"timings":{"evalTotalTime":…`,
		},
		"BadLimit":   {reason: "a limit that is none", path: "query", query: "query=1&limit=some", status: 400, want: fails("bad_data", `invalid parameter \"limit\": …`)},
		"Negative":   {reason: "a limit below zero", path: "query", query: "query=1&limit=-1", status: 400, want: fails("bad_data", `invalid parameter \"limit\": limit must be non-negative"}`)},
		"Lookback":   {reason: "a lookback that is none", path: "query", query: "query=1&lookback_delta=far", status: 400, want: fails("bad_data", `error parsing lookback delta duration: …`)},
		"NoQuery":    {reason: "a question without words", path: "query", status: 400, want: fails("bad_data", `invalid parameter \"query\": …`)},
		"Syntax":     {reason: "a question that does not parse", path: "query", query: "query=sum(", status: 400, want: fails("bad_data", `invalid parameter \"query\": 1:5: parse error: …`)},
		"Time":       {reason: "a time that is none", path: "query", query: "query=1&time=noon", status: 400, want: fails("bad_data", `invalid parameter \"time\": invalid time value for 'time': cannot parse \"noon\" to a valid timestamp"}`)},
		"Timeout":    {reason: "a timeout that is none", path: "query", query: "query=1&timeout=soon", status: 400, want: fails("bad_data", `invalid parameter \"timeout\": …`)},
		"NoStart":    {reason: "a range without its start", path: "query_range", query: "query=1&end=1&step=1", status: 400, want: fails("bad_data", `invalid parameter \"start\": …`)},
		"NoEnd":      {reason: "a range without its end", path: "query_range", query: "query=1&start=1&step=1", status: 400, want: fails("bad_data", `invalid parameter \"end\": …`)},
		"Backwards":  {reason: "an end before the start", path: "query_range", query: "query=1&start=2&end=1&step=1", status: 400, want: fails("bad_data", `invalid parameter \"end\": end timestamp must not be before start time"}`)},
		"NoStep":     {reason: "a range without steps", path: "query_range", query: "query=1&start=1&end=1", status: 400, want: fails("bad_data", `invalid parameter \"step\": …`)},
		"ZeroStep":   {reason: "a range that does not get on", path: "query_range", query: "query=1&start=1&end=1&step=0", status: 400, want: fails("bad_data", `invalid parameter \"step\": zero or negative …`)},
		"HugeStep":   {reason: "a step that int64 cannot hold", path: "query_range", query: "query=1&start=1&end=1&step=1e300", status: 400, want: fails("bad_data", `invalid parameter \"step\": …`)},
		"Points":     {reason: "too many points", path: "query_range", query: "query=1&start=0&end=11001&step=1", status: 400, want: fails("bad_data", `exceeded maximum resolution of 11,000 points…`)},
		"RangeQuery": {reason: "a text has no range", path: "query_range", query: `query="a"&start=0&end=1&step=1`, status: 400, want: fails("bad_data", `invalid parameter \"query\": …`)},
		"Form":       {reason: "a form that does not parse", method: "POST", path: "query", query: "query=%zz", status: 400, want: fails("bad_data", `error parsing form values: …`)},
		"Execution": {
			reason: "a join that has two partners", path: "query", query: `query=depth * on(job) depth`, status: 422, want: fails("execution", `…`),
		},
		"Late": {reason: "no time to answer", path: "query", query: "query=depth&timeout=0.000000001", status: 503, want: fails("timeout", `query timed out in …`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			var body io.Reader
			target := "/api/v1/" + tc.path
			if method == "POST" {
				body = strings.NewReader(strings.ReplaceAll(tc.query, " ", "+"))
			} else {
				u := url.URL{Path: target, RawQuery: strings.ReplaceAll(tc.query, " ", "+")}
				method, target = "GET", u.String()
			}
			r := httptest.NewRequestWithContext(t.Context(), method, target, body)
			if body != nil {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			w := httptest.NewRecorder()
			e.Handler().ServeHTTP(w, r)
			got := w.Body.String()
			if beginning, ok := strings.CutSuffix(tc.want, "…"); ok || strings.HasSuffix(tc.want, "…") {
				if !json.Valid(w.Body.Bytes()) || !strings.HasPrefix(got, beginning) {
					t.Errorf("%s: %s, want %s…", tc.reason, got, beginning)
				}
			} else if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if w.Code != tc.status || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s, want %d", tc.reason, w.Code, w.Header().Get("Content-Type"), tc.status)
			}
		})
	}
	for path, want := range map[string]int{"/-/ready": 200, "/api/v1/nosuch": 404} {
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("GET %s: %d, want %d", path, w.Code, want)
		}
	}
}

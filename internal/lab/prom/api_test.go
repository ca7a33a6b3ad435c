package prom_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// get asks the handler as a person with a shell would.
func get(t *testing.T, e *prom.Engine, path string, form url.Values) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/"+path+"?"+form.Encode(), nil)
	e.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestNames asks for series and labels with Prometheus's own client, and for
// what it cannot ask with the bytes.
func TestNames(t *testing.T) {
	e := open(t)
	ingest(t, e, start, "a", gauges(map[string]float64{"x": 1, "y": 2}))
	ingest(t, e, start.Add(time.Hour), "b", gauges(map[string]float64{"z": 3}))
	const all, z = `{__name__=~".+"}`, `depth{queue="z"}`
	later := url.Values{"start": {"4102446000"}, "end": {"4102450000"}}
	with := func(base url.Values, more ...string) url.Values {
		form := url.Values{}
		for name, values := range base {
			form[name] = values
		}
		for i := 0; i < len(more); i += 2 {
			form.Add(more[i], more[i+1])
		}
		return form
	}
	cases := map[string]struct {
		reason, path string
		form         url.Values
		status       int
		want         string
	}{
		"Labels":         {"all names", "labels", nil, 200, `{"status":"success","data":["__name__","job","queue"]}`},
		"LabelsMatch":    {"of what matches", "labels", url.Values{"match[]": {"up"}}, 200, `{"status":"success","data":["__name__","job"]}`},
		"LabelsSets":     {"of what either matches, once", "labels", url.Values{"match[]": {"up", z}}, 200, `{"status":"success","data":["__name__","job","queue"]}`},
		"LabelsLimit":    {"an answer cut short says so", "labels", url.Values{"limit": {"1"}}, 200, `{"status":"success","data":["__name__"],"warnings":["results truncated due to limit"]}`},
		"LabelsNone":     {"never null", "labels", url.Values{"match[]": {"nosuch"}}, 200, `{"status":"success","data":[]}`},
		"Values":         {"all values", "label/queue/values", nil, 200, `{"status":"success","data":["x","y","z"]}`},
		"ValuesMatch":    {"of what matches", "label/queue/values", url.Values{"match[]": {`depth{job="a"}`}}, 200, `{"status":"success","data":["x","y"]}`},
		"ValuesLimit":    {"the first ones", "label/__name__/values", url.Values{"limit": {"1"}}, 200, `{"status":"success","data":["depth"],"warnings":["results truncated due to limit"]}`},
		"ValuesNoName":   {"a name that is none", "label/%ff/values", nil, 400, `{"status":"error","errorType":"bad_data","error":"invalid label name: \"\\xff\""}`},
		"Series":         {"labels of each series", "series", url.Values{"match[]": {z, `up{job="b"}`}}, 200, `{"status":"success","data":[{"__name__":"depth","job":"b","queue":"z"},{"__name__":"up","job":"b"}]}`},
		"SeriesOnce":     {"two matchers of one series give it once", "series", url.Values{"match[]": {z, z}}, 200, `{"status":"success","data":[{"__name__":"depth","job":"b","queue":"z"}]}`},
		"SeriesLimit":    {"an answer cut short says so", "series", url.Values{"match[]": {all}, "limit": {"1"}}, 200, `{"status":"success","data":[{"__name__":"depth","job":"a","queue":"x"}],"warnings":["results truncated due to limit"]}`},
		"SeriesNone":     {"never null", "series", url.Values{"match[]": {"nosuch"}}, 200, `{"status":"success","data":[]}`},
		"SeriesTime":     {"only what had samples then", "series", with(later, "match[]", "depth"), 200, `{"status":"success","data":[{"__name__":"depth","job":"b","queue":"z"}]}`},
		"SeriesAll":      {"all series are too many to ask for by mistake", "series", url.Values{"match[]": {`{queue=~".*"}`}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": match[] must contain at least one non-empty matcher"}`},
		"SeriesNoMatch":  {"nothing was asked", "series", nil, 400, `{"status":"error","errorType":"bad_data","error":"no match[] parameter provided"}`},
		"SeriesBadMatch": {"a matcher that is none", "series", url.Values{"match[]": {"{"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": 1:2: parse error: unexpected end of input inside braces"}`},
		"SeriesBadStart": {"a time that is none", "series", url.Values{"match[]": {z}, "start": {"noon"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"start\": invalid time value for 'start': cannot parse \"noon\" to a valid timestamp"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, got := get(t, e, tc.path, tc.form)
			if status != tc.status {
				t.Errorf("%s: status %d, want %d", tc.reason, status, tc.status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	c := client(t, e)
	sets, _, _, err := c.Series(t.Context(), []string{z}, time.Time{}, time.Time{})
	if diff := cmp.Diff([]model.LabelSet{{"__name__": "depth", "job": "b", "queue": "z"}}, sets); err != nil || diff != "" {
		t.Errorf("Prometheus's client: %v (-want +got):\n%s", err, diff)
	}
	values, _, _, err := c.LabelValues(t.Context(), "job", nil, start.Add(-time.Hour), start.Add(2*time.Hour), v1.WithLimit(5))
	if diff := cmp.Diff(model.LabelValues{"a", "b"}, values); err != nil || diff != "" {
		t.Errorf("Prometheus's client: %v (-want +got):\n%s", err, diff)
	}
}

func TestStatus(t *testing.T) {
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Now: func() time.Time { return start }, Retention: 15 * 24 * time.Hour, MaxSamples: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	c := client(t, e)
	flags, err := c.Flags(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"storage.tsdb.retention.time": "15d", "query.max-samples": "100", "query.lookback-delta": "5m"} {
		if flags[name] != want {
			t.Errorf("flag %s is %q, want %q", name, flags[name], want)
		}
	}
	info, err := c.Runtimeinfo(t.Context())
	if err != nil || info.StorageRetention != "15d" || !info.StartTime.Equal(start) {
		t.Errorf("runtime info %+v, %v, want a retention of 15d since %s", info, err, start)
	}
	build, err := c.Buildinfo(t.Context())
	mod, readErr := os.ReadFile("../../../go.mod")
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	major, rest, _ := strings.Cut(build.Version, ".")
	if library := "github.com/prometheus/prometheus v0." + major + rest; !strings.Contains(string(mod), library) {
		t.Errorf("it calls itself %s, but go.mod has no %s", build.Version, library)
	}
	ingest(t, e, start, "a", gauges(map[string]float64{"x": 1}))
	status, body := get(t, e, "query", url.Values{"query": {"count_over_time(depth[5m:1s] @ 4102444800)"}})
	if status != http.StatusOK {
		t.Errorf("a query within the limit of samples: %d %s", status, body)
	}
	status, body = get(t, e, "query_range", url.Values{"query": {"time()"}, "start": {"0"}, "end": {"200"}, "step": {"1"}})
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, "query processing would load too many samples into memory") {
		t.Errorf("a query above the limit of samples: %d %s", status, body)
	}
}

// TestRetention loads more than is kept, and finds the rest gone.
func TestRetention(t *testing.T) {
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Retention: 12 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	b := e.Bulk([]labels.Labels{labels.FromStrings("__name__", "n")})
	end := start.Add(48 * time.Hour)
	for at := start; !at.After(end); at = at.Add(time.Minute) {
		if err := b.Scrape(at, []float64{1}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 20*time.Second, "old blocks are removed", func() bool {
		v, ok, err := e.Value(t.Context(), "count_over_time(n[48h])", end)
		return err == nil && ok && v <= 18*60
	})
	if v, _, _ := e.Value(t.Context(), "count_over_time(n[12h])", end); v != 12*60 {
		t.Errorf("%v samples in 12h, want every minute", v)
	}
}

// TestCompressed holds that only who asks for it gets it compressed.
func TestCompressed(t *testing.T) {
	e := open(t)
	for encoding, want := range map[string]string{"": "", "gzip": "gzip", "br": ""} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/query?query=1", nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("asked for %q, got %q, want %q", encoding, got, want)
		}
		var body io.Reader = w.Body
		if want == "gzip" {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || !json.Valid(text) || !bytes.Contains(text, []byte(`"scalar"`)) {
			t.Errorf("asked for %q: %s, %v", encoding, text, err)
		}
	}
}

// TestCounts holds that each request, sample and series is counted once.
func TestCounts(t *testing.T) {
	e := open(t)
	b := e.Bulk([]labels.Labels{labels.FromStrings("__name__", "n", "a", "1"), labels.FromStrings("__name__", "n", "a", "2")})
	for i := range 41 {
		if err := b.Scrape(start.Add(time.Duration(i)*15*time.Second), []float64{1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	before := e.Counts()
	if before.Queries() != 0 || before.Samples != 0 {
		t.Errorf("counts %+v before anything was asked", before)
	}
	at := start.Add(10 * time.Minute).Format(time.RFC3339)
	_, body := get(t, e, "query", url.Values{"query": {"sum(rate(n[5m]))"}, "time": {at}, "stats": {"all"}})
	get(t, e, "query", url.Values{"query": {"n"}, "time": {at}})
	get(t, e, "query_range", url.Values{"query": {"n"}, "start": {at}, "end": {at}, "step": {"1"}})
	get(t, e, "query", url.Values{"query": {"n * on() n"}, "time": {at}})
	get(t, e, "series", url.Values{"match[]": {"n"}})
	get(t, e, "status/flags", nil)
	want := prom.Counts{
		Requests: map[string]int64{"query": 3, "query_range": 1, "series": 1, "status/flags": 1},
		// 20 in 5m of each series (the left end is open), then 2, 2 and 4.
		Samples: 40 + 2 + 2 + 4, Series: 2 + 2 + 2 + 4, Returned: 1 + 2 + 2, Failed: 1,
	}
	got := e.Counts()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(prom.Counts{Requests: map[string]int64{}}, got.Since(got)); diff != "" {
		t.Errorf("nothing since now (-want +got):\n%s", diff)
	}
	var answer struct {
		Data struct {
			Stats struct {
				Samples struct {
					TotalQueryableSamples, PeakSamples int64
					TotalQueryableSamplesPerStep       [][2]float64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	s := answer.Data.Stats.Samples
	if s.TotalQueryableSamples != 40 || s.PeakSamples == 0 || len(s.TotalQueryableSamplesPerStep) != 1 {
		t.Errorf("statistics %+v in the answer, want 40 samples, a peak, one step", s)
	}
}

func TestBulk(t *testing.T) {
	e := open(t)
	b := e.Bulk([]labels.Labels{labels.FromStrings("__name__", "n", "a", "1"), labels.FromStrings("__name__", "n", "a", "2")})
	for i, values := range [][]float64{{1, math.NaN()}, {2, 10}, {3, prom.Ended()}} {
		if err := b.Scrape(start.Add(time.Duration(i)*time.Minute), values); err != nil {
			t.Fatal(err)
		}
	}
	for expr, want := range map[string]float64{"count_over_time(n{a='1'}[1h])": 3, "count_over_time(n{a='2'}[1h])": 1, "count(n)": 1} {
		if v, _, err := e.Value(t.Context(), expr, start.Add(2*time.Minute)); v != want || err != nil {
			t.Errorf("%s = %v, %v, want %v", expr, v, err, want)
		}
	}
	if err := b.Scrape(start.Add(time.Hour), []float64{1}); err == nil {
		t.Error("one value was taken for two series")
	}
	if err := b.Scrape(start, []float64{7, 7}); err == nil {
		t.Error("a scrape was taken that lies before the last one")
	}
}

// TestWireIsStandardJSON holds that the encoding by hand is what the standard
// library reads back, whatever the label values are.
func TestWireIsStandardJSON(t *testing.T) {
	e := open(t)
	r := prometheus.NewRegistry()
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g"}, []string{"l"})
	r.MustRegister(v)
	values := map[string]float64{"plain": 1, `"quoted"\`: 2.5, "<&>": 3, "ümläut €": 4, "line\nfeed\ttab": 1e21, "del\x7f": -1e-7, "\u2028": math.Inf(1)}
	for l, x := range values {
		v.WithLabelValues(l).Set(x)
	}
	ingest(t, e, start, "a", r)
	got, _, _, err := client(t, e).Query(t.Context(), "g", start.Add(7*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{}
	for _, s := range got.(model.Vector) {
		if want := model.TimeFromUnixNano(start.Add(7 * time.Millisecond).UnixNano()); s.Timestamp != want {
			t.Errorf("time %v, want %v", s.Timestamp, want)
		}
		seen[string(s.Metric["l"])] = float64(s.Value)
	}
	if diff := cmp.Diff(values, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, body := get(t, e, "query", url.Values{"query": {"1"}, "time": {"-0.5"}}); !strings.Contains(body, "[-0.5,") {
		t.Errorf("a time before 1970: %s", body)
	}
	if _, body := get(t, e, "query", url.Values{"query": {"vector(1)"}, "time": {"-0.5"}}); !strings.Contains(body, "[-0.5,") {
		t.Errorf("a time before 1970: %s", body)
	}
}

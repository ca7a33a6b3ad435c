package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// liveWorld is a Prometheus with a day of samples and a folder of documents.
type liveWorld struct {
	engine *prom.Engine
	url    string
	dir    string
	now    time.Time
}

func newLiveWorld(t *testing.T, retention time.Duration) *liveWorld {
	t.Helper()
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Block: 48 * time.Hour, Retention: retention})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(e.Handler())
	t.Cleanup(func() { srv.Close(); _ = e.Close() })
	return &liveWorld{engine: e, url: srv.URL, dir: t.TempDir(), now: time.Now().Truncate(time.Second)}
}

// count writes counters that grow by so much in each minute of a span that ends
// so long before now.
func (w *liveWorld) count(t *testing.T, span, ended time.Duration, perMinute map[string]float64) {
	t.Helper()
	var series []labels.Labels
	var rates []float64
	for text, rate := range perMinute {
		vs, err := parseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		b := labels.NewBuilder(labels.EmptyLabels())
		for _, m := range vs.LabelMatchers {
			b.Set(m.Name, m.Value)
		}
		series, rates = append(series, b.Labels()), append(rates, rate)
	}
	bulk := w.engine.Bulk(series)
	for at := -span; at <= -ended; at += time.Minute {
		values := make([]float64, len(rates))
		for i, r := range rates {
			values[i] = r * (at + span).Minutes()
		}
		if err := bulk.Scrape(w.now.Add(at), values); err != nil {
			t.Fatal(err)
		}
	}
}

// sloDocument is one SLO, judged on an hour and five minutes.
func sloDocument(service, window, kind, part, total string) string {
	return fmt.Sprintf(`apiVersion: openslo/v1
kind: SLO
metadata: {name: %s}
spec:
  service: %s
  timeWindow: [{duration: %s, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
  indicator:
    metadata: {name: %s}
    spec:
      ratioMetric:
        counter: true
        %s:
          metricSource: {type: Prometheus, spec: {query: %q}}
        total:
          metricSource: {type: Prometheus, spec: {query: %q}}
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: %[1]s}
spec: {service: %[1]s, objectives: {%[1]s: {burnRates: [{short: 5m, long: 1h, factor: 2, page: true}]}}}
`, service, service, window, service, kind, part, total)
}

// validate runs validate --live over the documents.
func (w *liveWorld) validate(t *testing.T, documents map[string]string, more ...string) (int, *validation, string) {
	t.Helper()
	w.write(t, "setpoint.yaml", fmt.Sprintf(
		"documents: [slo/]\nsources: [{name: main, url: %q, queriesPerSecond: 1000}]\nproposer: {rules: none.yaml}\n", w.url))
	w.write(t, "none.yaml", "rules: []\n")
	for name, text := range documents {
		w.write(t, "slo/"+name+".yaml", text)
	}
	var out, errs bytes.Buffer
	a := &app{
		out: &out, err: &errs, getenv: func(string) string { return "" }, now: func() time.Time { return w.now },
	}
	code := a.run(append([]string{"validate", "--live", "--config", filepath.Join(w.dir, "setpoint.yaml")}, more...))
	if len(more) == 0 {
		return code, nil, out.String() + errs.String()
	}
	v := &validation{}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		t.Fatalf("%v: %s %s", err, out.String(), errs.String())
	}
	return code, v, errs.String()
}

func (w *liveWorld) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestValidateLive(t *testing.T) {
	w := newLiveWorld(t, 0)
	const day = 24 * time.Hour
	w.count(t, day, 0, map[string]float64{
		`http_requests_total{service="checkout",code="200"}`: 100, `http_requests_total{service="checkout",code="500"}`: 1,
		`http_requests_total{service="hopeless",code="200"}`: 50, `http_requests_total{service="hopeless",code="500"}`: 50,
		`latency_bucket{service="search",le="1.0"}`: 10, `latency_bucket{service="search",le="+Inf"}`: 10,
	})
	w.count(t, 3*time.Hour, 2*time.Hour, map[string]float64{`jobs_total{service="jobs",result="ok"}`: 10})
	w.count(t, day, 3*time.Minute, map[string]float64{`stale_total{service="lagging"}`: 10})

	requests := func(service string) string { return `http_requests_total{service="` + service + `"}` }
	cases := map[string]struct {
		reason string
		doc    string
		// want is severity, code, and words of the text and of what to do.
		want []string
	}{
		"well": {
			reason: "a day of data for a window of a day, and few errors",
			doc:    sloDocument("checkout", "1d", "bad", `http_requests_total{service="checkout",code=~"5.."}`, requests("checkout")),
		},
		"young": {
			reason: "a day of data for a window of a week is said and stops nothing",
			doc:    sloDocument("checkout", "7d", "bad", `http_requests_total{service="checkout",code="500"}`, requests("checkout")),
			want:   []string{"warning young-data: window truncated to 2: of 1w"},
		},
		"metric never existed": {
			reason: "a typing error in a name is found with the name that was meant",
			doc:    sloDocument("checkout", "1d", "bad", `http_request_total{service="checkout",code="500"}`, requests("checkout")),
			want:   []string{"error metric-never-existed: nothing is called http_request_total: did you mean http_requests_total?"},
		},
		"value never existed": {
			reason: "so is one in a value",
			doc:    sloDocument("checkout", "1d", "good", `http_requests_total{service="chekout",code="200"}`, requests("checkout")),
			want:   []string{`error never-matched: without service="chekout" it would: did you mean service="checkout"?`},
		},
		"no failure yet": {
			reason: "that nothing failed for a day is good news, or a wrong matcher",
			doc:    sloDocument("checkout", "1d", "bad", `http_requests_total{service="checkout",code=~"5xx"}`, requests("checkout")),
			want:   []string{`warning bad-never-seen: there is code="200", code="500": fine if nothing failed`},
		},
		"falls back": {
			reason: "a metric that is not there is no fault where another one gives the value",
			doc: sloDocument("checkout", "1d", "bad", `http_requests_total{service="checkout",code="500"}`,
				`sum(increase(http_requests_total{service="checkout"}[{{.window}}])) or sum(increase(http_request_count{service="checkout"}[{{.window}}]))`),
			want: []string{"warning metric-never-existed: nothing is called http_request_count"},
		},
		"stopped": {
			reason: "an exporter that was there within a day",
			doc:    sloDocument("jobs", "1d", "good", `jobs_total{service="jobs",result="ok"}`, `jobs_total{service="jobs"}`),
			want: []string{
				`error stopped: jobs_total{result="ok",service="jobs"} selects nothing now, and did within the last day`,
				`error stopped: jobs_total{service="jobs"} selects nothing now, and did within the last day`,
			},
		},
		"le": {
			reason: "Prometheus 3 stores whole bounds with .0",
			doc:    sloDocument("search", "1d", "good", `latency_bucket{service="search",le="1"}`, `latency_bucket{service="search",le="+Inf"}`),
			want:   []string{`error le-spelling: with le="1.0" it would: select both spellings, as in le=~"1|1\\.0"`},
		},
		"several series": {
			reason: "nothing says which of two series the promise is about",
			doc: sloDocument("checkout", "1d", "bad", `sum(increase(http_requests_total{service="checkout",code="500"}[{{.window}}]))`,
				`increase(http_requests_total{service="checkout"}[{{.window}}])`),
			want: []string{"error several-series: returned 2 series: aggregate with sum()"},
		},
		"stale": {
			reason: "a newest sample of three minutes ago cannot be judged",
			doc:    sloDocument("lagging", "1d", "good", `stale_total{service="lagging"}`, `stale_total{service="lagging"}`),
			want:   []string{"error stale: is 3m0s old, the limit is 1m30s: look at the scrape"},
		},
		"never met": {
			reason: "what missed its target all day is a matter of the document",
			doc:    sloDocument("hopeless", "1d", "bad", `http_requests_total{service="hopeless",code=~"5.."}`, requests("hopeless")),
			want:   []string{"error never-met: in each of 12 judge windows of the last day, by errors of 50 % at least where 10 % are allowed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.dir = t.TempDir()
			code, v, errs := w.validate(t, map[string]string{"a": tc.doc}, "-o", "json")
			wantCode := exitFine
			if v.Live == nil {
				t.Fatalf("%s: nothing live: %s", tc.reason, errs)
			}
			if len(v.Live.Findings) != len(tc.want) {
				t.Fatalf("%s: got %+v, want %q", tc.reason, v.Live.Findings, tc.want)
			}
			for i, want := range tc.want {
				f := v.Live.Findings[i]
				got := f.Severity + " " + f.Code + ": " + f.Text + ": " + f.Do
				if f.Severity == isError {
					wantCode = exitError
				}
				for _, words := range strings.Split(want, ": ") {
					if !strings.Contains(got, words) {
						t.Errorf("%s: got %q, want %q", tc.reason, got, words)
					}
				}
				if f.Line == 0 || !strings.HasSuffix(f.File, "slo/a.yaml") || f.Source != "main" {
					t.Errorf("%s: found at %s:%d of %q", tc.reason, f.File, f.Line, f.Source)
				}
			}
			if code != wantCode || v.Valid != (wantCode == exitFine) {
				t.Errorf("%s: exit %d, valid %v, want %d", tc.reason, code, v.Valid, wantCode)
			}
		})
	}
}

func TestValidateLiveRefusesAWindowBeyondRetention(t *testing.T) {
	w := newLiveWorld(t, 15*24*time.Hour)
	w.count(t, time.Hour, 0, map[string]float64{`http_requests_total{service="checkout",code="200"}`: 10})
	doc := sloDocument("checkout", "30d", "good", `http_requests_total{service="checkout",code="200"}`, `http_requests_total{service="checkout"}`)
	code, _, text := w.validate(t, map[string]string{"a": doc})
	if code != exitError || strings.Contains(text, "young-data") {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		"main    yes      3.16.0   +", "  15d\n", "window-beyond-retention", "window 30d, the server keeps 15d: keep samples longer", "live: 1 error, 0 warnings",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

// TestValidateLiveAsksInGroups: a fleet of one shape costs as many queries as
// there are groups, not services.
func TestValidateLiveAsksInGroups(t *testing.T) {
	const services = 150
	w := newLiveWorld(t, 0)
	series, docs := map[string]float64{}, map[string]string{}
	for i := range services {
		name := fmt.Sprintf("s%03d", i)
		series[`http_requests_total{service="`+name+`",code="200"}`] = 100
		docs[name] = sloDocument(name, "1h", "bad", `http_requests_total{service="`+name+`",code="500"}`, `http_requests_total{service="`+name+`"}`)
	}
	w.count(t, 2*time.Hour, 0, series)
	var asked atomic.Int32
	h := w.engine.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	_, v, errs := w.validate(t, docs, "-o", "json")
	if v.Live == nil || len(v.Live.Findings) != services {
		t.Fatalf("every service never had a failure: %+v %s", v.Live, errs)
	}
	if n := asked.Load(); n > services {
		t.Errorf("%d queries for %d services of one shape", n, services)
	}
}

func TestOtherBound(t *testing.T) {
	want := map[string]string{"1": "1.0", "1.0": "1", "0.5": "", "+Inf": "", "250": "250.0", "1e3": "", "": ""}
	got := map[string]string{}
	for le := range want {
		got[le] = otherBound(le)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

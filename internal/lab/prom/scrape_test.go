package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/measure"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// eventually waits for a real scrape, which no clock in a bubble can hurry.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// TestScrape scrapes real exporters in real time: two of one job, and one that
// dies.
func TestScrape(t *testing.T) {
	var dead atomic.Bool
	exporter := func(value int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if dead.Load() || r.URL.Path != "/own/metrics" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprintf(w, "depth %d\n", value)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/own/metrics"
	}
	e, err := prom.New(prom.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- e.Scrape(t.Context(), []prom.Target{{Job: "a", URL: exporter(1)}, {Job: "b", URL: exporter(2)}, {Job: "b", URL: exporter(4)}}, 100*time.Millisecond)
	}()
	is := func(expr string, want float64, there bool) func() bool {
		return func() bool {
			v, ok, err := e.Value(t.Context(), expr, time.Now())
			return err == nil && ok == there && v == want
		}
	}
	eventually(t, 10*time.Second, "both exporters of b", is(`sum(depth{job="b"})`, 6, true))
	eventually(t, 10*time.Second, "all of them are up", is(`sum(up)`, 3, true))
	dead.Store(true)
	eventually(t, 10*time.Second, "the series ended", is(`sum(depth)`, 0, false))
	if !is(`sum(up)`, 0, true)() {
		t.Error("the series ended, but the exporters are up")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestScrapeEndsWithItsContext(t *testing.T) {
	e := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Scrape(ctx, []prom.Target{{Job: "a", URL: "http://127.0.0.1:1/metrics"}}, time.Second); err != nil {
		t.Error(err)
	}
	if err := e.Scrape(t.Context(), []prom.Target{{Job: "a", URL: "http://%zz"}}, time.Second); err == nil {
		t.Error("a URL that is none was taken")
	}
	if err := e.Scrape(t.Context(), []prom.Target{{Job: "", URL: "http://127.0.0.1:1/metrics"}}, time.Second); err == nil {
		t.Error("a job without a name was taken")
	}
}

// TestSource measures through the client that the agent uses, in simulated
// time: a ratio, its sample time, the coverage of a window, and a failed
// scrape, after which nothing is known.
func TestSource(t *testing.T) {
	e := open(t)
	server := httptest.NewServer(e.Handler())
	t.Cleanup(server.Close)
	source, err := measureprom.New(measureprom.Options{Name: "lab", URL: server.URL, HTTP: config.DefaultHTTPClientConfig, QueriesPerSecond: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if clock := source.Clock(t.Context()); clock.Err != nil || !clock.Time.Equal(start) {
		t.Errorf("the source's clock is %+v, want %s", clock, start)
	}
	o := spec.Objective{
		ID: "availability", Target: 0.99, Window: time.Hour, JudgeWindow: time.Minute,
		Indicator: spec.Indicator{
			Bad:   &spec.Query{Expr: `depth{queue="bad"}`, Counter: true},
			Total: &spec.Query{Expr: `depth`, Counter: true},
		},
	}
	look := func(at time.Time) measure.Measurement {
		set := measure.NewSet(source.Measure(t.Context(), []measure.Query{measure.At("shop", o, o.JudgeWindow, at)}))
		return set.Get(measure.ID{Service: "shop", Objective: o.ID, Window: o.JudgeWindow, At: at})
	}
	if m := look(start); m.Reason != measure.NoData {
		t.Errorf("before any scrape: %+v", m)
	}
	for i := range 13 {
		n := float64(i)
		ingest(t, e, start.Add(time.Duration(i)*5*time.Second), "a", gauges(map[string]float64{"bad": 10 * n, "good": 90 * n}))
	}
	end := start.Add(time.Minute)
	if m := look(end); !m.Known() || m.ErrorRatio < 0.0999 || m.ErrorRatio > 0.1001 || !m.SampleAt.Equal(end) {
		t.Errorf("%+v, want a ratio of 0.1 from samples at %s", m, end)
	}
	ingest(t, e, end.Add(5*time.Second), "a", nil)
	if m := look(end.Add(5 * time.Second)); m.Known() {
		t.Errorf("after a failed scrape something is known: %+v", m)
	}
}

package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
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

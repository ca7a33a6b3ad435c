package prom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

// besides answers what is measured, and evidence in its own way.
func besides(evidence http.HandlerFunc) http.Handler {
	well := healthy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "evidence") {
			evidence(w, r)
			return
		}
		well.ServeHTTP(w, r)
	})
}

// Whatever comes of evidence, the next measurement is taken: three faults in a
// row of what is measured would rest the source instead.
func TestEvidenceIsNotHeldAgainstTheSource(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   measure.Reason
	}{
		"Overloaded": {"a breakdown that is too heavy for it", status(http.StatusServiceUnavailable, "no"), measure.SourceError},
		"Busy":       {"429 speaks of what was asked too often, which is this", status(http.StatusTooManyRequests, "no", "Retry-After", "300"), measure.SourceError},
		"Forbidden":  {"a proxy that lets only some queries through", status(http.StatusForbidden, "no"), measure.SourceRefused},
		"Refused":    {"a query that it does not take", status(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"many-to-many"}`), measure.QueryError},
		"Partial":    {"an answer that lacks a store", status(http.StatusOK, `{"status":"success","warnings":["store down"],"data":{"resultType":"vector","result":[]}}`), measure.Partial},
		"Broken":     {"an answer that is none", status(http.StatusOK, `{"status":`), measure.SourceError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, besides(tc.answer))
			for range 5 {
				if r := s.AskAside(t.Context(), "evidence", now); r.Reason != tc.want {
					t.Fatalf("%s: reason %q (%s), want %q", tc.reason, r.Reason, r.Detail, tc.want)
				}
			}
			if m := one(t, s, objective()); !m.Known() {
				t.Errorf("%s: then nothing is measured: %s %s", tc.reason, m.Reason, m.Detail)
			}
		})
	}
}

// A source that failed is left alone by evidence too, and evidence is not what
// it is tried with.
func TestEvidenceLeavesAResting(t *testing.T) {
	var down atomic.Bool
	var asked, tried atomic.Int64
	at := now
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	well := besides(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(vector("1")))
	})
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "time()" {
			tried.Add(1)
		}
		if down.Load() {
			status(http.StatusTooManyRequests, "no")(w, r)
			return
		}
		well.ServeHTTP(w, r)
	}), func(o *prom.Options) { o.Now = clock })
	if r := s.AskAside(t.Context(), "evidence", now); r.Reason != "" || asked.Load() != 1 {
		t.Fatalf("a healthy source: %q %s", r.Reason, r.Detail)
	}
	down.Store(true)
	one(t, s, objective())
	down.Store(false)
	if r := s.AskAside(t.Context(), "evidence", now); r.Reason == "" || asked.Load() != 1 {
		t.Errorf("a resting source was asked, %d times", asked.Load())
	}
	mu.Lock()
	at = at.Add(time.Hour)
	mu.Unlock()
	if r := s.AskAside(t.Context(), "evidence", now); r.Reason == "" || tried.Load() != 0 {
		t.Errorf("a source that was not tried since is tried with evidence: %q, %d", r.Reason, tried.Load())
	}
	one(t, s, objective())
	if r := s.AskAside(t.Context(), "evidence", now); r.Reason != "" {
		t.Errorf("it answers again: %q %s", r.Reason, r.Detail)
	}
}

// Evidence that never answers ends with its deadline, and leaves a slot to what
// is measured meanwhile.
func TestSlowEvidenceHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t, besides(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if r := s.AskAside(ctx, "evidence", now); r.Reason != measure.SourceError {
					t.Errorf("reason %q %s", r.Reason, r.Detail)
				}
			})
		}
		time.Sleep(time.Second)
		if m := one(t, s, objective()); !m.Known() || time.Since(began) > 2*time.Second {
			t.Errorf("measured beside it after %s: %s %s", time.Since(began), m.Reason, m.Detail)
		}
		wg.Wait()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("ten that never answer took %s", took)
		}
	})
}

func TestFleetAsk(t *testing.T) {
	s := serve(t, besides(status(http.StatusOK, vector("3", "7"), "Content-Type", "application/json")))
	f, err := prom.NewFleet(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", s.Name()} {
		if r := f.Ask(t.Context(), name, "evidence", now); len(r.Series) != 2 {
			t.Errorf("source %q: %+v", name, r)
		}
	}
	if r := f.Ask(t.Context(), "gone\x1b", "evidence", now); r.Reason != measure.QueryError || strings.Contains(r.Detail, "\x1b") {
		t.Errorf("a source that is not there: %+v", r)
	}
}

// TestRealEvidence asks the real server for a breakdown of a real exporter.
func TestRealEvidence(t *testing.T) {
	binary := debian(t, "prometheus")
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "# TYPE queue gauge\nqueue{version=\"v1\",pod=\"a\"} 2\nqueue{version=\"v2\",pod=\"b\"} 5\n"+
			"queue{version=\"v2\",pod=\"c\"} 6\nqueue{version=\"v3\",pod=\"d\"} NaN\n")
	}))
	t.Cleanup(exporter.Close)
	s := source(t, startPrometheus(t, binary, t.TempDir(), "scrape_configs: [{job_name: shop, scrape_interval: 1s, scrape_timeout: 1s, "+
		"static_configs: [{targets: ["+strconv.Quote(exporter.Listener.Addr().String())+"]}]}]"))
	by := func(expr string) measure.Breakdown {
		// A deadline that is no whole number of seconds is told to the server too.
		ctx, cancel := context.WithTimeout(t.Context(), 4900*time.Millisecond)
		defer cancel()
		return measure.BreakdownOf("queue", []string{"version"}, s.AskAside(ctx, expr, measure.Instant(time.Now())))
	}
	const summed = `sum by (version) (queue)`
	var got measure.Breakdown
	eventually(t, 30*time.Second, func() bool { got = by(summed); return len(got.Rows) > 0 }, func() any { return got })
	want := measure.Breakdown{
		Name: "queue", Labels: []string{"version"}, Dropped: 1,
		Rows: []measure.BreakdownRow{{Values: []string{"v2"}, Number: 11}, {Values: []string{"v1"}, Number: 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := by(`queue`); got.Reason != measure.SeveralSeries {
		t.Errorf("two pods of a version without an aggregation: %+v", got)
	}
	if got := by(`queue * on (version) queue`); got.Reason != measure.QueryError {
		t.Errorf("many-to-many: %+v", got)
	}
	if got := by(`sum by (version) (nothing)`); got.Reason != "" || len(got.Rows) != 0 {
		t.Errorf("nothing of the kind: %+v", got)
	}
}

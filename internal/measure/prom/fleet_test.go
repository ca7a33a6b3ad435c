package prom_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
)

func TestFleet(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); hung.Close() })
	a := answers{"good": vector("75"), "total": vector("100"), "newest": vector(seconds(now))}
	main := serve(t, a)
	slow := source(t, hung.URL, func(o *prom.Options) { o.Name, o.Timeout = "slow", 50*time.Millisecond })
	fleet, err := prom.NewFleet(main, slow)
	if err != nil {
		t.Fatal(err)
	}
	var qs []measure.Query
	for i, name := range []string{"slow", "", "elsewhere", "main", "slow"} {
		q := query()
		q.Source, q.ID.Objective = name, strconv.Itoa(i)
		qs = append(qs, q)
	}
	var got []string
	for i, m := range fleet.Measure(t.Context(), qs) {
		if m.ID != qs[i].ID {
			t.Errorf("answer %d is for %+v", i, m.ID)
		}
		got = append(got, m.Source+" "+string(m.Reason))
	}
	want := []string{"slow source-error", "main ", "elsewhere query-error", "main ", "slow source-error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := prom.NewFleet(); err == nil {
		t.Error("a fleet without sources was made")
	}
	if _, err := prom.NewFleet(main, main); err == nil {
		t.Error("a fleet with one name twice was made")
	}
}

// A server that trickles must end at the deadline, and a source that is down
// must not be asked for as many timeouts as there are queries.
func TestSlowSourceIsGivenUp(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
			}
		}
	}), func(o *prom.Options) { o.Timeout, o.MaxConcurrency = 60*time.Millisecond, 1 })
	var qs []measure.Query
	for i := range 50 {
		q := query()
		q.ID.At = now.Add(time.Duration(i) * time.Minute)
		qs = append(qs, q)
	}
	start := time.Now()
	for _, m := range s.Measure(t.Context(), qs) {
		if m.Reason != measure.SourceError {
			t.Errorf("got %+v", m)
		}
	}
	if calls.Load() != 3 || time.Since(start) > 3*time.Second {
		t.Errorf("%d calls in %s, want 3 in about 0.2 s", calls.Load(), time.Since(start))
	}
	// The next pass tries again.
	one(t, s, query())
	if calls.Load() != 6 {
		t.Errorf("%d calls after the next pass, want 6", calls.Load())
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	var running, most atomic.Int32
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		_, _ = w.Write([]byte(vector("1")))
	}), func(o *prom.Options) { o.MaxConcurrency = 2 })
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 10 {
				q := query()
				q.ID.At = now.Add(time.Duration(10*i+j) * time.Millisecond)
				s.Measure(context.Background(), []measure.Query{q})
			}
		})
	}
	wg.Wait()
	if most.Load() > 2 {
		t.Errorf("%d calls at once, want 2 at most", most.Load())
	}
}

func TestPassThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := serve(t, answers{}).Measure(ctx, []measure.Query{query()})[0]
	if m.Reason != measure.SourceError {
		t.Errorf("got %+v", m)
	}
}

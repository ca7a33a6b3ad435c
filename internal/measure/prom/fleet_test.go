package prom_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestFleet(t *testing.T) {
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); hung.Close() })
	main := serve(t, healthy())
	slow := source(t, hung.URL, func(o *prom.Options) { o.Name, o.Timeout = "slow", 50*time.Millisecond })
	fleet, err := prom.NewFleet(main, slow)
	if err != nil {
		t.Fatal(err)
	}
	var qs []measure.Query
	for _, name := range []string{"slow", "", "elsewhere", "main", "slow"} {
		qs = append(qs, queriesOf(name)...)
	}
	var got []string
	for i, m := range fleet.Measure(t.Context(), qs) {
		if m.ID != qs[i].ID {
			t.Errorf("answer %d is for %+v", i, m)
		}
		got = append(got, m.Source+" "+string(m.Reason))
	}
	want := []string{"slow source-error", "main ", "elsewhere query-error", "main ", "slow source-error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s, ok := fleet.Source(""); !ok || s != main {
		t.Error("the first source is not the default")
	}
	if _, ok := fleet.Source("elsewhere"); ok {
		t.Error("a source was found that is not there")
	}
	if _, err := prom.NewFleet(); err == nil {
		t.Error("a fleet without sources was made")
	}
	if _, err := prom.NewFleet(main, main); err == nil {
		t.Error("a fleet with one name twice was made")
	}
}

// queriesOf asks a source by its name.
func queriesOf(source string) []measure.Query {
	return queries(objective(func(o *spec.Objective) {
		o.Indicator.Good = &spec.Query{Expr: "good", Counter: true, Source: source}
		o.Indicator.Total = &spec.Query{Expr: "total", Counter: true, Source: source}
	}), now)
}

func TestConcurrencyIsBounded(t *testing.T) {
	var running, most atomic.Int32
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-time.After(5 * time.Millisecond) // long enough for others to come
		(&fleetServer{}).ServeHTTP(w, r)
	}), func(o *prom.Options) { o.MaxConcurrency, o.Chunk = 2, 1 })
	var wg sync.WaitGroup
	queries := fleetQueries(3)
	for i := range 4 {
		wg.Go(func() { s.Measure(context.Background(), queries(now.Add(time.Duration(i)*time.Millisecond))) })
	}
	wg.Wait()
	if most.Load() != 2 {
		t.Errorf("%d calls at once, want 2", most.Load())
	}
}

func TestPassThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := serve(t, healthy())
	m := s.Measure(ctx, queries(objective(), now))[0]
	if m.Reason != measure.SourceError || !strings.Contains(m.Detail, "the pass ended first") {
		t.Errorf("got %+v", m)
	}
	if m := one(t, s, objective()); !m.Known() {
		t.Errorf("the source is blamed for it: %+v", m)
	}
}

package fleet_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
	"github.com/setpoint-dev/setpoint/internal/measure"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// sweepEvery is the interval of the sweeps.
const sweepEvery = 15 * time.Second

// hourly are services whose windows (5m and 1h) 90 minutes of samples cover.
func hourly(services int) fleet.Options {
	return fleet.Options{
		Services: services, Period: time.Hour,
		BurnRates: []spec.BurnRate{{Short: 5 * time.Minute, Long: time.Hour, Factor: 14.4, Page: true}},
	}
}

// rig is a fleet behind HTTP on loopback.
type rig struct {
	*fleet.Fleet

	recorder *fleet.Recorder
	url      string
	set      spec.Set
}

// newRig makes a rig whose time is twenty minutes before the last scrape.
func newRig(t testing.TB, o fleet.Options) *rig {
	t.Helper()
	f := open(t, o)
	set, err := f.Options.Set()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Fleet: f, set: set, recorder: fleet.Record(f.Engine.Handler())}
	r.url = serve(t, r.recorder)
	r.Clock.Set(r.End().Add(-20 * time.Minute))
	return r
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// some are the first n services.
func (r *rig) some(n int) spec.Set {
	set := r.set
	set.Services = set.Services[:n]
	return set
}

// agent starts an agent that is closed with the test.
func (r *rig) agent(t testing.TB, change func(*fleet.AgentOptions)) *fleet.Agent {
	t.Helper()
	a := r.start(t, change)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// start starts an agent over all services, with a ledger of its own, unless
// change says otherwise. Nothing holds it, so that one that was closed costs
// nothing.
func (r *rig) start(t testing.TB, change func(*fleet.AgentOptions)) *fleet.Agent {
	t.Helper()
	o := fleet.AgentOptions{Dir: t.TempDir(), URL: r.url, Set: r.set, Clock: r.Clock, Interval: sweepEvery}
	if change != nil {
		change(&o)
	}
	a, err := fleet.NewAgent(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// healthy makes a sweep that must find every service met.
func healthy(t testing.TB, a *fleet.Agent, services int) {
	t.Helper()
	results := a.Sweep(t.Context())
	met := 0
	for _, res := range results {
		if res.Err == nil && res.Assessment.State == compare.Met {
			met++
		}
	}
	if met != services || len(results) != services {
		t.Fatalf("%d of %d services are met, want all %d; one is %s", met, len(results), services, odd(results))
	}
}

func odd(results []reconcile.Result) string {
	for _, res := range results {
		if res.Err != nil {
			return res.Service + ": " + res.Err.Error()
		}
		if a := res.Assessment; a.State != compare.Met {
			worst, _ := a.Worst()
			return res.Service + ": " + string(a.State) + " " + string(a.Reason) + " " + worst.Detail
		}
	}
	return "none"
}

// looker measures what is due of all services and compares it, as a sweep does,
// and nothing else.
func (r *rig) looker(t testing.TB) func() {
	t.Helper()
	source, err := measureprom.New(measureprom.Options{
		Name: "main", URL: r.url, HTTP: config.DefaultHTTPClientConfig, QueriesPerSecond: 1e6, Now: r.Clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	plans := measure.Compile(r.set.Services, nil)
	held := make([]*measure.Held, len(r.set.Services))
	for i, svc := range r.set.Services {
		held[i] = measure.Hold(plans.Service(svc.Name), nil)
	}
	limits := compare.Limits{Sweep: sweepEvery}
	return func() {
		now := r.Clock.Now()
		var qs []measure.Query
		ends := make([]int, len(held))
		for i, h := range held {
			qs = append(qs, h.Due(now, sweepEvery)...)
			ends[i] = len(qs)
		}
		ms := source.Measure(context.Background(), qs)
		begin := 0
		for i, h := range held {
			h.Keep(qs[begin:ends[i]], ms[begin:ends[i]])
			begin = ends[i]
			if a := compare.Assess(r.set.Services[i], measure.NewSet(h.Measured(now, sweepEvery)), limits, now); a.State != compare.Met {
				t.Fatalf("%s is %s %s", a.Service, a.State, a.Reason)
			}
		}
	}
}

// recorded gives the queries that f sends.
func (r *rig) recorded(f func()) []fleet.Call {
	r.recorder.Begin()
	f()
	return r.recorder.End()
}

// bare sends the calls and does nothing with the answers.
func bare(t testing.TB, url string) func(calls []fleet.Call) {
	t.Helper()
	c, err := fleet.NewBare(url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return func(calls []fleet.Call) {
		if _, err := c.Send(context.Background(), calls); err != nil {
			t.Fatal(err)
		}
	}
}

// remembering answers what was asked before from memory, byte for byte: a
// server that costs next to nothing.
type remembering struct {
	next http.Handler

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
}

func (m *remembering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := r.URL.String() + " " + string(body)
	m.mu.Lock()
	a := m.answers[key]
	m.mu.Unlock()
	if a == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		a = httptest.NewRecorder()
		m.next.ServeHTTP(a, r)
		m.mu.Lock()
		m.answers[key] = a
		m.mu.Unlock()
	}
	w.Header().Set("Content-Type", a.Header().Get("Content-Type"))
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes())
}

// cost is what something took: time, and time of processors, which other work
// on the machine does not stretch.
type cost struct{ wall, cpu time.Duration }

// timed is what f costs, from a heap that was just cleaned.
func timed(f func()) cost {
	runtime.GC()
	began, before := time.Now(), processors()
	f()
	return cost{wall: time.Since(began), cpu: processors() - before}
}

// processors is the time that this process has used them.
func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median is of the times and of the processors' times, each by itself.
func median(cs []cost) cost {
	middle := func(of func(cost) time.Duration) time.Duration {
		ds := make([]time.Duration, len(cs))
		for i, c := range cs {
			ds[i] = of(c)
		}
		slices.Sort(ds)
		return ds[len(ds)/2]
	}
	return cost{middle(func(c cost) time.Duration { return c.wall }), middle(func(c cost) time.Duration { return c.cpu })}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// against reports a ratio with both medians.
func against(b *testing.B, n int, a, beside []cost) {
	b.Helper()
	x, y := median(a), median(beside)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratio(x.wall, y.wall), "ratio")
	b.ReportMetric(ratio(x.cpu, y.cpu), "cpu-ratio")
	b.ReportMetric(millis(x.wall), "A-ms")
	b.ReportMetric(millis(y.wall), "B-ms")
	b.ReportMetric(millis(x.cpu), "A-cpu-ms")
	b.ReportMetric(millis(y.cpu), "B-cpu-ms")
	b.ReportMetric(float64(n), "N")
}

// growth is the exponent with which a cost grows from n to m.
func growth(n, m int, a, b time.Duration) float64 {
	return math.Log(ratio(b, a)) / math.Log(float64(m)/float64(n))
}

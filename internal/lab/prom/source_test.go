package prom_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/measure"
	measureprom "github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

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
		set := measure.NewSet(source.Measure(t.Context(), measure.At("shop", o, o.JudgeWindow, at)))
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

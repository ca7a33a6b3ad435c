package prom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
)

// values asks the instants for one number each; nothing is -1.
func values(t *testing.T, e *prom.Engine, expr string, at ...time.Time) []float64 {
	t.Helper()
	var got []float64
	for _, a := range at {
		v, ok, err := e.Value(t.Context(), expr, a)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			v = -1
		}
		got = append(got, v)
	}
	return got
}

func after(seconds ...int) []time.Time {
	var at []time.Time
	for _, s := range seconds {
		at = append(at, start.Add(time.Duration(s)*time.Second))
	}
	return at
}

// TestStaleness holds that a series ends with the first scrape that misses it,
// whether the scrape failed or not, and not five minutes later.
func TestStaleness(t *testing.T) {
	e := open(t)
	both, one := gauges(map[string]float64{"x": 1, "y": 2}), gauges(map[string]float64{"x": 1})
	ingest(t, e, after(0)[0], "a", both)
	ingest(t, e, after(0)[0], "b", both)
	ingest(t, e, after(10)[0], "a", one)
	ingest(t, e, after(20)[0], "a", nil)
	ingest(t, e, after(30)[0], "a", nil)
	ingest(t, e, after(40)[0], "a", both)

	at := after(9, 10, 19, 20, 30, 39, 40)
	for expr, want := range map[string][]float64{
		`depth{job="a",queue="x"}`: {1, 1, 1, -1, -1, -1, 1},
		`depth{job="a",queue="y"}`: {2, -1, -1, -1, -1, -1, 2},
		`depth{job="b",queue="y"}`: {2, 2, 2, 2, 2, 2, 2},
		`up{job="a"}`:              {1, 1, 1, 0, 0, 0, 1},
		`up{job="b"}`:              {1, 1, 1, 1, 1, 1, 1},
		// One marker each, as the scrape manager writes: a second failed scrape
		// has nothing left to end.
		`count_over_time(depth{job="a",queue="x"}[5m])`: {1, 2, 2, 2, 2, 2, 3},
	} {
		if diff := cmp.Diff(want, values(t, e, expr, at...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expr, diff)
		}
	}
	// A job that is no longer scraped at all ages out, as with a server.
	if diff := cmp.Diff([]float64{2, -1}, values(t, e, `depth{job="b",queue="y"}`, after(299, 300)...)); diff != "" {
		t.Error(diff)
	}
}

// faulty is a collector that cannot collect.
type faulty struct{ err error }

func (faulty) Describe(chan<- *prometheus.Desc) {}

func (f faulty) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "", nil, nil), f.err)
}

func TestIngestRefuses(t *testing.T) {
	e := open(t)
	g := gauges(map[string]float64{"x": 1})
	ingest(t, e, after(10)[0], "a", g)
	if err := e.Ingest(after(9)[0], "a", g); err == nil {
		t.Error("a scrape before the last one was taken")
	}
	boom := errors.New("boom")
	broken := prometheus.NewRegistry()
	broken.MustRegister(faulty{boom})
	if err := e.Ingest(after(20)[0], "a", broken); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v, want the gatherer's error", err)
	}
	if diff := cmp.Diff([]float64{-1, 0}, append(values(t, e, "depth", after(20)...), values(t, e, "up", after(20)...)...)); diff != "" {
		t.Errorf("a gatherer that fails is a scrape that failed (-want +got):\n%s", diff)
	}
	if _, _, err := e.Value(t.Context(), "sum(", start); err == nil {
		t.Error("a query that does not parse gave a value")
	}
	if _, _, err := e.Value(t.Context(), "{__name__=~'.+'}", after(15)[0]); err == nil {
		t.Error("two series gave one value")
	}
	if _, _, err := e.Value(t.Context(), "depth[1m]", start); err == nil {
		t.Error("a range gave one value")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Ingest(after(30)[0], "a", g); err == nil {
		t.Error("a closed engine took samples")
	}
	if err := e.Scrape(t.Context(), nil, time.Second); err == nil {
		t.Error("a closed engine scrapes")
	}
}

// TestKinds ingests every kind of metric as a text page has it.
func TestKinds(t *testing.T) {
	e := open(t)
	r := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2.5}})
	s := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Objectives: map[float64]float64{0.5: 0.05}})
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", ConstLabels: prometheus.Labels{"job": "theirs"}})
	u := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "u"}, func() float64 { return 7 })
	r.MustRegister(h, s, c, u)
	for _, v := range []float64{0.5, 2, 30} {
		h.Observe(v)
		s.Observe(v)
	}
	c.Add(3)
	ingest(t, e, start, "a", r)
	got := map[string]float64{}
	for _, expr := range []string{
		`h_bucket{le="1.0"}`, `h_bucket{le="2.5"}`, `h_bucket{le="+Inf"}`, "h_sum", "h_count", "s_sum", "s_count",
		`s{quantile="0.5"}`, `c_total{job="a",exported_job="theirs"}`, "u",
	} {
		got[expr] = values(t, e, expr, start)[0]
	}
	want := map[string]float64{
		`h_bucket{le="1.0"}`: 1, `h_bucket{le="2.5"}`: 2, `h_bucket{le="+Inf"}`: 3, "h_sum": 32.5, "h_count": 3,
		"s_sum": 32.5, "s_count": 3, `s{quantile="0.5"}`: 2, `c_total{job="a",exported_job="theirs"}`: 3, "u": 7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDays holds that the storage goes on when it has to write blocks.
func TestDays(t *testing.T) {
	e := open(t)
	r := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total"})
	r.MustRegister(c)
	const minutes = 3 * 24 * 60
	for i := range minutes {
		ingest(t, e, start.Add(time.Duration(i)*time.Minute), "a", r)
		c.Inc()
	}
	end := start.Add((minutes - 1) * time.Minute)
	if v := values(t, e, "increase(c_total[2d])", end)[0]; v < 2879 || v > 2881 {
		t.Errorf("an increase of %v in two days, want 2880", v)
	}
}

package prom_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	labprom "github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const scrape = 15 * time.Second

// series is one series and what it holds at scrape i; NaN is no sample.
type series struct {
	labels labels.Labels
	value  func(i int) float64
}

// load fills an engine with scrapes from start on.
func load(t interface{ Fatal(...any) }, e *labprom.Engine, start time.Time, scrapes int, all []series) {
	names := make([]labels.Labels, len(all))
	for i, s := range all {
		names[i] = s.labels
	}
	b := e.Bulk(names)
	values := make([]float64, len(all))
	for i := range scrapes {
		for j, s := range all {
			values[j] = s.value(i)
		}
		if err := b.Scrape(start.Add(time.Duration(i)*scrape), values); err != nil {
			t.Fatal(err)
		}
	}
}

func engine(t interface{ Fatal(...any) }, dir string, at time.Time) *labprom.Engine {
	e, err := labprom.New(labprom.Options{Dir: dir, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// restarts is a counter of an exporter that starts anew every so many scrapes.
func restarts(rate float64, every int) func(int) float64 {
	return func(i int) float64 { return rate * float64(i%every) }
}

func TestCounterResets(t *testing.T) {
	cases := map[string]struct {
		reason string
		every  int
		want   measure.Reason
	}{
		"never":           {"a counter that only grows", 1000, ""},
		"a deployment":    {"one restart loses one scrape", 10, ""},
		"five times over": {"each loses what happened since the last scrape", 4, measure.CounterResets},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := engine(t, t.TempDir(), now)
			t.Cleanup(func() { _ = e.Close() })
			load(t, e, now.Add(-30*scrape), 31, []series{
				{labels.FromStrings("__name__", "good"), restarts(99, tc.every)},
				{labels.FromStrings("__name__", "total"), restarts(100, tc.every)},
			})
			m := one(t, serve(t, e.Handler()), objective())
			if m.Reason != tc.want || m.Known() && math.Abs(m.ErrorRatio-0.01) > 1e-9 {
				t.Errorf("%s: got %+v, want %q", tc.reason, m, tc.want)
			}
		})
	}
}

// ills are what one service of a fleet may suffer from.
var ills = []string{"", "", "", "", "absent", "ended", "holes", "inf", "restarts", "good > total", "negative", "twice", "refused", "no traffic", "bad absent"}

// member of a drawn fleet.
type drawn struct {
	name, ill string
	objective int // which of the shapes
	rate      float64
}

// shapes are objectives that differ in nothing but the service.
func shapes(service string, i int) spec.Objective {
	sel := fmt.Sprintf("{service=%q}", service)
	q := func(expr string) *spec.Query { return &spec.Query{Expr: fmt.Sprintf(expr, sel)} }
	in := []spec.Indicator{
		{Good: &spec.Query{Expr: "good" + sel, Counter: true}, Total: &spec.Query{Expr: "total" + sel, Counter: true}},
		{Bad: q("sum(increase(bad%s[{{.window}}]))"), Total: q("sum(increase(total%s[{{.window}}]))"), AbsentBadZero: true},
		{Raw: q("1 - sum(rate(good%[1]s[{{.window}}])) / sum(rate(total%[1]s[{{.window}}]))")},
		{Raw: q("avg(rate(bad%[1]s[{{.window}}]) / on (pod) rate(total%[1]s[{{.window}}]))")},
	}[i]
	return spec.Objective{
		ID: "o", Target: 0.99, Window: 8 * time.Minute, JudgeWindow: 3 * time.Minute, Indicator: in,
		BurnRates: []spec.BurnRate{{Short: time.Minute, Long: 5 * time.Minute, Factor: 2, Page: true}},
	}
}

func (d drawn) series() []series {
	grow := func(share float64) func(int) float64 {
		return func(i int) float64 {
			switch {
			case d.ill == "holes" && i%3 != 0, d.ill == "ended" && i > 30:
				return math.NaN()
			case d.ill == "ended" && i == 30:
				return labprom.Ended()
			case d.ill == "inf" && i > 35:
				return math.Inf(1)
			case d.ill == "restarts":
				return share * d.rate * float64(i%2)
			case d.ill == "negative":
				return -1 - share*d.rate*float64(i%2)
			case d.ill == "no traffic":
				return 5
			}
			return share * d.rate * float64(i)
		}
	}
	good := 0.97
	if d.ill == "good > total" {
		good = 1.4
	}
	var out []series
	add := func(name string, share float64, more ...string) {
		ls := labels.FromStrings(append([]string{"__name__", name, "service", d.name, "pod", "a"}, more...)...)
		out = append(out, series{ls, grow(share)})
	}
	if d.ill == "absent" {
		return nil
	}
	add("good", good)
	add("total", 1)
	if d.ill != "bad absent" {
		add("bad", 1-good)
	}
	if d.ill == "twice" {
		add("total", 0.5, "job", "second")
		add("bad", 0.1, "job", "second")
	}
	return out
}

// TestGroupedEqualsSingle holds that asking together changes no answer: for
// random fleets, data and faults of single members, over the real engine, every
// measurement is the one of a source that asks everything by itself. The second
// pass holds it for what was learned in the first.
func TestGroupedEqualsSingle(t *testing.T) {
	end := now.Add(39*scrape + 7*time.Second)
	e := engine(t, t.TempDir(), end)
	t.Cleanup(func() { _ = e.Close() })
	fleets := 0
	seen := map[measure.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		var fleet []drawn
		var all []series
		fleets++ // each fleet has names, and so samples, of its own
		for i := range rapid.IntRange(2, 14).Draw(t, "services") {
			d := drawn{
				name: fmt.Sprintf("s.%d.%d", fleets, i), ill: rapid.SampledFrom(ills).Draw(t, "ill"),
				objective: rapid.IntRange(0, 3).Draw(t, "objective"), rate: rapid.Float64Range(0.1, 1e6).Draw(t, "rate"),
			}
			fleet = append(fleet, d)
			all = append(all, d.series()...)
		}
		load(t, e, now, 40, all)
		server := httptest.NewServer(refusing(e.Handler(), fleet))
		defer server.Close()

		services := make([]spec.Service, len(fleet))
		for i, d := range fleet {
			services[i] = spec.Service{Name: d.name, Objectives: []spec.Objective{shapes(d.name, d.objective)}}
		}
		plans := measure.Compile(services, nil)
		clock := end
		make := func(chunk int) *prom.Source {
			s, err := prom.New(prom.Options{
				Name: "main", URL: server.URL, QueriesPerSecond: 1e6, Chunk: chunk, Now: func() time.Time { return clock },
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		single, grouped := make(1), make(rapid.IntRange(2, 10).Draw(t, "chunk"))
		for range 2 {
			var qs []measure.Query
			for _, svc := range services {
				qs = append(qs, plans.Service(svc.Name).Pass(clock)...)
			}
			want, got := single.Measure(t.Context(), qs), grouped.Measure(t.Context(), qs)
			details := cmpopts.IgnoreFields(measure.Measurement{}, "Detail")
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0), details); diff != "" {
				t.Fatalf("fleet %+v (-single +grouped):\n%s", fleet, diff)
			}
			for _, m := range got {
				seen[m.Reason]++
			}
			clock = clock.Add(scrape)
		}
	})
	for _, r := range []measure.Reason{"", measure.NoData, measure.NotFinite, measure.OutOfRange, measure.QueryError, measure.CounterResets} {
		if seen[r] == 0 {
			t.Errorf("no measurement was %q, so it was not tested: %v", r, seen)
		}
	}
}

// refusing refuses whatever is asked of services that are so ill.
func refusing(h http.Handler, fleet []drawn) http.Handler {
	var names []string
	for _, d := range fleet {
		if d.ill == "refused" {
			names = append(names, d.name)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range members(r.FormValue("query")) {
			if slices.Contains(names, name) {
				refuse(w, http.StatusUnprocessableEntity, "execution", "label "+name+" is not to be seen")
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

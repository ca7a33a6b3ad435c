package fleet_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const day = 24 * time.Hour

// TestHealthyPassAsksNobody holds that a healthy fleet costs no question to a
// model, no evaluation of the policy, and no query but those for numbers.
func TestHealthyPassAsksNobody(t *testing.T) {
	const services, sweeps = 40, 300
	o := hourly(services)
	o.Span = 3 * time.Hour
	r := newRig(t, o)
	r.Clock.Set(r.End().Add(-sweeps * sweepEvery))
	a := r.agent(t, nil)
	for range sweeps {
		healthy(t, a, services)
		r.Clock.Pass(sweepEvery)
	}
	if p, e := a.Proposals.Load(), a.Rulings.Load(); p != 0 || e != 0 {
		t.Errorf("%d healthy sweeps: %d proposals and %d evaluations, want none", sweeps, p, e)
	}
	for endpoint := range r.Engine.Counts().Requests {
		if endpoint != "query" {
			t.Errorf("healthy sweeps ask %s", endpoint)
		}
	}
}

// TestQueriesOfASweep is B3 against the real engine: for n services of one
// shape each expression of the judge window is ceil(n/100) queries in each
// sweep, and those of another window are as many when it is due.
func TestQueriesOfASweep(t *testing.T) {
	r := newRig(t, hourly(1000))
	for _, n := range []int{100, 250, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			groups := (n + 99) / 100
			a := r.agent(t, func(o *fleet.AgentOptions) { o.Set = r.some(n) })
			count := func(sweeps int) map[string]int {
				before, sent := r.Engine.Counts().Queries(), map[string]int{}
				for range sweeps {
					for _, call := range r.recorded(func() { healthy(t, a, n) }) {
						sent[window(t, call, r.Clock.Now())]++
					}
					r.Clock.Pass(sweepEvery)
				}
				all := 0
				for _, times := range sent {
					all += times
				}
				if got := r.Engine.Counts().Queries() - before; got != int64(all) {
					t.Errorf("the engine counts %d queries, and %d were sent", got, all)
				}
				return sent
			}
			// Good, total and resets, and the newest sample for all windows; good and
			// total of the hour; and whether there was data an hour ago.
			first := map[string]int{"clock": 1, "5m": 3 * groups, "newest": groups, "1h": 2 * groups, "5m of an hour ago": groups}
			if diff := cmp.Diff(first, count(1)); diff != "" {
				t.Errorf("the first sweep (-want +got):\n%s", diff)
			}
			minute := count(4)
			// That is looked at again every ten minutes, group by group.
			delete(minute, "5m of an hour ago")
			if diff := cmp.Diff(map[string]int{"clock": 4, "5m": 4 * 3 * groups, "newest": 4 * groups, "1h": 2 * groups}, minute); diff != "" {
				t.Errorf("the four sweeps of a minute (-want +got):\n%s", diff)
			}
		})
	}
}

var ranges = regexp.MustCompile(`\[(\w+)\]`)

// window names what a query asks.
func window(t *testing.T, c fleet.Call, now time.Time) string {
	t.Helper()
	form, err := url.ParseQuery(c.Form)
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseFloat(form.Get("time"), 64)
	found := ranges.FindStringSubmatch(c.Expr())
	switch {
	case found == nil && !strings.Contains(c.Expr(), "service"):
		return "clock"
	case found == nil:
		return "newest"
	case err != nil || now.Sub(time.UnixMilli(int64(at*1000))) > 50*time.Minute:
		return found[1] + " of an hour ago"
	}
	return found[1]
}

// TestQueriesOfAnHour is B3 for long windows: an hour of sweeps over fleets of
// one shape sends the same queries for each hundred services, and at most 1.5 a
// sweep for each expression, although five windows up to 30 days are kept.
func TestQueriesOfAnHour(t *testing.T) {
	const hour = int(time.Hour / sweepEvery)
	// The start is long enough for windows that are only shown to be read.
	const start = int(5*time.Minute/sweepEvery) + 1
	perGroup := map[int]map[string]int{}
	for _, n := range []int{100, 1000} {
		if racing && n > 100 {
			return
		}
		groups := n / 100
		o := fleet.Options{Services: n, BurnRates: long()}
		sent := simulate(t, o, start, hour)
		perGroup[n] = map[string]int{}
		expressions := map[string]bool{}
		all := 0
		for what, times := range sent {
			if times%groups != 0 {
				t.Errorf("%d services: %d queries for %s, want as many for each of %d groups", n, times, what, groups)
			}
			perGroup[n][what] = times / groups
			expressions[what[:strings.LastIndex(what, " ")]] = true
			all += times
		}
		if each := float64(all) / float64(groups*hour*len(expressions)); each > 1.5 {
			t.Errorf("%d services: %.2f queries a sweep for each expression and group, want at most 1.5", n, each)
		} else {
			t.Logf("%d services: %.3f queries a sweep for each of %d expressions and %d groups", n, each, len(expressions), groups)
		}
	}
	if diff := cmp.Diff(perGroup[100], perGroup[1000]); diff != "" {
		t.Errorf("1,000 services are asked for otherwise than 100:\n%s", diff)
	}
	// The first sweep of 10,000 asks everything that decides, once.
	for what, times := range simulate(t, fleet.Options{Services: 10_000, BurnRates: long()}, 0, 1) {
		if times != 100 {
			t.Errorf("10,000 services: %d queries for %s, want 100", times, what)
		}
	}
}

// long are burn rates over 5m, 1h, 6h and 3d.
func long() []spec.BurnRate {
	return []spec.BurnRate{
		{Short: 5 * time.Minute, Long: time.Hour, Factor: 14.4, Page: true},
		{Short: 6 * time.Hour, Long: 3 * day, Factor: 1},
	}
}

// simulate makes sweeps over a fleet with a source that answers everything with
// the same healthy number, after a start that is not counted, and counts the
// requests by expression and window.
func simulate(t *testing.T, o fleet.Options, start, sweeps int) map[string]int {
	t.Helper()
	set, err := o.Set()
	if err != nil {
		t.Fatal(err)
	}
	plans := measure.Compile(set.Services, nil)
	held := make([]*measure.Held, len(set.Services))
	for i, svc := range set.Services {
		held[i] = measure.Hold(plans.Service(svc.Name), nil)
	}
	sent := map[string]int{}
	for k := range start + sweeps {
		now := fleet.End().Add(time.Duration(k) * sweepEvery)
		var qs []measure.Query
		ends := make([]int, len(held))
		for i, h := range held {
			qs = append(qs, h.Due(now, sweepEvery)...)
			ends[i] = len(qs)
		}
		batch := measure.NewBatch(qs)
		for rs := batch.Requests(chunk); len(rs) > 0; rs = batch.Requests(chunk) {
			for _, req := range rs {
				batch.Put(req, measure.Reading{Series: same(req, now)})
				if k >= start {
					sent[strings.ReplaceAll(req.Shape, " ", "")+" "+req.Window.String()+"@"+now.Sub(req.At).String()]++
				}
			}
		}
		begin := 0
		for i, h := range held {
			h.Keep(qs[begin:ends[i]], batch.Measurements()[begin:ends[i]])
			begin = ends[i]
		}
	}
	return sent
}

func chunk(string, time.Duration) int { return 100 }

var alternation = regexp.MustCompile(`service=~"([^"]+)"`)

// same gives each service of a request one series of the same value: a time
// where it asks for one.
func same(r measure.Request, now time.Time) []measure.Sample {
	value := 1000.0
	switch {
	case strings.Contains(r.Expr, "timestamp("):
		value = float64(now.Add(-5 * time.Second).Unix())
	case strings.Contains(r.Expr, "resets("):
		value = 0
	}
	found := alternation.FindStringSubmatch(r.Expr)
	if found == nil {
		return []measure.Sample{{Value: value, At: r.At}}
	}
	var out []measure.Sample
	for _, name := range strings.Split(found[1], "|") {
		out = append(out, measure.Sample{Metric: model.Metric{"service": model.LabelValue(name)}, Value: value, At: r.At})
	}
	return out
}

// TestSamplesOfSixHours is B4: six hours of sweeps with windows up to 30 days read
// at most a fortieth of what asking all of them in each sweep would read, by
// the engine's own statistics.
func TestSamplesOfSixHours(t *testing.T) {
	const services, sweeps = 3, int(6 * time.Hour / sweepEvery)
	o := fleet.Options{Services: services, Interval: time.Minute, Span: 31 * day, BurnRates: long()}
	r := newRig(t, o)
	began := r.End().Add(-6*time.Hour - time.Minute)
	read := func(f func()) int64 {
		before := r.Engine.Counts()
		f()
		return r.Engine.Counts().Since(before).Samples
	}
	r.Clock.Set(began)
	a := r.agent(t, nil)
	cadence := read(func() {
		for range sweeps {
			healthy(t, a, services)
			r.Clock.Pass(sweepEvery)
		}
	})
	// Every sweep reads nearly the same, so every sixtieth is enough.
	const every = 60
	r.Clock.Set(began)
	all := every * read(func() {
		for range sweeps / every {
			if _, err := r.agent(t, nil).Plan(t.Context(), nil, false); err != nil {
				t.Fatal(err)
			}
			r.Clock.Pass(every * sweepEvery)
		}
	})
	t.Logf("%d samples in six hours, %d with all windows in each sweep: 1/%.0f", cadence, all, float64(all)/float64(cadence))
	if cadence*40 > all {
		t.Errorf("%d samples in six hours, want at most a fortieth of %d", cadence, all)
	}
}

package measure_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// member is one of many services whose queries differ in one label.
func member(i int) spec.Service {
	name := fmt.Sprintf("s%04d", i)
	o := objective()
	o.Indicator = spec.Indicator{
		Bad:   &spec.Query{Expr: `sum(increase(http_requests_total{service="` + name + `",code=~"5.."}[{{.window}}]))`},
		Total: &spec.Query{Expr: `sum(increase(http_requests_total{service="` + name + `"}[{{.window}}]))`}, AbsentBadZero: true,
	}
	return spec.Service{Name: name, Digest: "digest of " + name, Objectives: []spec.Objective{o}}
}

func members(n int) []spec.Service {
	out := make([]spec.Service, n)
	for i := range out {
		out[i] = member(i)
	}
	return out
}

// questions is how many expressions are sent for queries one by one.
func questions(t *testing.T, qs []measure.Query) int {
	t.Helper()
	n := 0
	batched(t, qs, 1, func(measure.Request) measure.Reading {
		n++
		return measure.Reading{Reason: measure.SourceError}
	})
	return n
}

// Equal expressions of one compilation are one question, those of two are two:
// that shows which were taken over.
func TestCompileTakesOverWhatDidNotChange(t *testing.T) {
	svc := member(1)
	before := measure.Compile([]spec.Service{svc, member(2)}, nil)
	old := before.Service(svc.Name)
	alone := questions(t, old.Pass(now))
	changed := svc
	changed.Digest = "another"
	undigested := svc
	undigested.Digest = ""
	cases := map[string]struct {
		reason   string
		services []spec.Service
		want     int
	}{
		"unchanged":             {"the same documents, the same expressions", []spec.Service{svc}, alone},
		"unchanged, other gone": {"whatever became of others", []spec.Service{member(3), svc}, alone},
		"changed":               {"another digest, everything anew", []spec.Service{changed}, 2 * alone},
		"no digest":             {"what has no digest cannot be known to be the same", []spec.Service{undigested}, 2 * alone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := measure.Compile(tc.services, before).Service(svc.Name)
			if diff := cmp.Diff(ids(old.Pass(now)), ids(after.Pass(now))); diff != "" {
				t.Errorf("the plans differ (-before +after):\n%s", diff)
			}
			if got := questions(t, append(old.Pass(now), after.Pass(now)...)); got != tc.want {
				t.Errorf("%s: %d questions, want %d", tc.reason, got, tc.want)
			}
		})
	}
	blank := measure.Compile([]spec.Service{undigested}, nil)
	again := measure.Compile([]spec.Service{undigested}, blank)
	if got := questions(t, append(blank.Service(svc.Name).Pass(now), again.Service(svc.Name).Pass(now)...)); got != 2*alone {
		t.Errorf("what never had a digest was taken over: %d questions, want %d", got, 2*alone)
	}
	if p := measure.Compile(nil, before); p.Service(svc.Name) != nil {
		t.Error("a service that is gone still has a plan")
	}
	var none *measure.Plans
	if none.Service("x") != nil || none.Service("x").Pass(now) != nil {
		t.Error("no plans plan something")
	}
}

// Documents are checked, and what is planned from anything else must not end the
// agent.
func TestCompileOfAnObjectiveWithoutWindows(t *testing.T) {
	o := spec.Objective{ID: "a", Indicator: objective().Indicator}
	if qs := measure.Pass(service(o), now); len(qs) != 1 || qs[0].ID.Window != measure.HourBefore {
		t.Errorf("got %+v, want the hour before alone", qs)
	}
	if qs := measure.At("checkout", o, time.Hour, now); len(qs) != 1 || questions(t, qs) != 3 {
		t.Errorf("got %+v, want the total, its part and their age", qs)
	}
}

func TestEqualQuestionsAreAskedOnce(t *testing.T) {
	query := func(expr string) spec.Service {
		o := objective()
		o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: expr}}
		return service(o)
	}
	first := query(`avg(avg_over_time(up{job="shop",zone="a"}[{{.window}}]))`)
	cases := map[string]struct {
		reason string
		expr   string
		extra  int // questions besides those of the first
	}{
		"same":            {"the same text", `avg(avg_over_time(up{job="shop",zone="a"}[{{.window}}]))`, 0},
		"written anew":    {"spaces and the order of matchers mean nothing", `avg ( avg_over_time( up{zone='a', job="shop"}[{{ .window }}] ) )`, 0},
		"another value":   {"another series", `avg(avg_over_time(up{job="shop",zone="b"}[{{.window}}]))`, 2},
		"values exchange": {"another series", `avg(avg_over_time(up{job="a",zone="shop"}[{{.window}}]))`, 2},
		"another shape":   {"another number", `min(avg_over_time(up{job="shop",zone="a"}[{{.window}}]))`, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			second := query(tc.expr)
			second.Name = "other"
			plans := measure.Compile([]spec.Service{first, second}, nil)
			var one, both []measure.Query
			for _, q := range plans.Service("checkout").Pass(now) {
				if q.ID.Window == time.Hour && !q.ID.TotalOnly {
					one = append(one, q)
				}
			}
			both = slices.Clone(one)
			for _, q := range plans.Service("other").Pass(now) {
				if q.ID.Window == time.Hour && !q.ID.TotalOnly {
					both = append(both, q)
				}
			}
			if got := questions(t, both) - questions(t, one); got != tc.extra {
				t.Errorf("%s: %d more questions, want %d", tc.reason, got, tc.extra)
			}
			grouped := batched(t, both, 100, func(r measure.Request) measure.Reading {
				return measure.Reading{Reason: measure.NoData, Detail: r.Expr}
			})
			if len(grouped) != 2 {
				t.Errorf("%d answers to 2 queries", len(grouped))
			}
		})
	}
}

// dueAt are the services with a window due, for each window, in one pass.
func dueAt(helds map[string]*measure.Held, at time.Time, sweep time.Duration) (map[measure.ID][]string, []measure.Query) {
	due := map[measure.ID][]string{}
	var all []measure.Query
	for _, name := range sorted(helds) {
		h := helds[name]
		qs := append(h.Due(at, sweep), h.Shown(at, sweep)...)
		all = append(all, qs...)
		for _, q := range qs {
			key := measure.ID{Window: q.ID.Window, TotalOnly: q.ID.TotalOnly, At: q.ID.At}
			due[key] = append(due[key], name)
		}
		h.Keep(qs, healthy(qs))
	}
	return due, all
}

// healthy are the measurements of services with no errors.
func healthy(qs []measure.Query) []measure.Measurement {
	ms := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		ms[i] = measure.Measurement{ID: q.ID, AsOf: q.ID.At, HasEvents: true, Good: 1e5, Total: 1e5, SampleAt: q.ID.At}
	}
	return ms
}

func holdAll(plans *measure.Plans, services []spec.Service, before map[string]*measure.Held) map[string]*measure.Held {
	helds := map[string]*measure.Held{}
	for _, svc := range services {
		helds[svc.Name] = measure.Hold(plans.Service(svc.Name), before[svc.Name])
	}
	return helds
}

// B3: whoever shares a query is due in one pass, so a pass sends no more
// queries than whole groups need.
func TestGroupsAreDueTogether(t *testing.T) {
	const n, chunk, sweep = 250, 100, 30 * time.Second
	services := members(n)
	plans := measure.Compile(services, nil)
	helds := holdAll(plans, services, nil)
	r := rand.New(rand.NewSource(1))
	at, partial := now, 0
	for pass := range 60 {
		due, all := dueAt(helds, at, sweep)
		for window, names := range due {
			if len(names) == n {
				continue
			}
			partial++
			for from := 0; from < n; from += chunk {
				group := 0
				for i := from; i < min(from+chunk, n); i++ {
					if slices.Contains(names, services[i].Name) {
						group++
					}
				}
				if group != 0 && group != min(chunk, n-from) {
					t.Fatalf("pass %d, window %+v: %d of the group from %d are due", pass, window, group, from)
				}
			}
		}
		if pass%10 == 1 {
			checkRequests(t, all, due, chunk)
		}
		at = at.Add(sweep + time.Duration(r.Intn(6001)-3000)*time.Millisecond)
	}
	if partial == 0 {
		t.Error("every window was due for all at once: nothing is spread")
	}
}

// checkRequests: a window costs its total and its bad, the judge window the
// resets too, and the pass the newest sample once; each in whole groups.
func checkRequests(t *testing.T, qs []measure.Query, due map[measure.ID][]string, chunk int) {
	t.Helper()
	groups := func(n int) int { return (n + chunk - 1) / chunk }
	want, judged := 0, 0
	for window, names := range due {
		switch {
		case window.TotalOnly:
			want += groups(len(names))
		case window.Window == 5*time.Minute:
			judged = len(names)
			want += 3 * groups(len(names))
		default:
			want += 2 * groups(len(names))
		}
	}
	want += groups(judged)
	b := measure.NewBatch(qs)
	rs := b.Requests(func(string, time.Duration) int { return chunk })
	// The windows from a day on ask first whether counts were recorded.
	for window, names := range due {
		if !window.TotalOnly && window.Window >= 24*time.Hour {
			want -= groups(len(names))
		}
	}
	if len(rs) != want {
		t.Errorf("%d requests, want %d", len(rs), want)
	}
}

func TestPhasesAreTheSameAfterARestart(t *testing.T) {
	services := members(230)
	same := services[99] // at the border of two groups
	same.Name, same.Digest = "twin", "twin"
	services = append(services, same) // of equal expressions
	const sweep = 30 * time.Second
	schedule := func(services []spec.Service, before *measure.Plans) string {
		helds := holdAll(measure.Compile(services, before), services, nil)
		var out strings.Builder
		for pass := range 40 {
			due, _ := dueAt(helds, now.Add(time.Duration(pass)*sweep), sweep)
			for _, id := range slices.SortedFunc(maps.Keys(due), compareIDs) {
				fmt.Fprintln(&out, pass, id.Window, id.TotalOnly, due[id])
			}
		}
		return out.String()
	}
	first := schedule(services, nil)
	for range 2 {
		shuffled := slices.Clone(services)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(first, schedule(shuffled, nil)); diff != "" {
			t.Fatalf("a restart moves what is due:\n%s", diff)
		}
	}
	before := measure.Compile(services[:100], nil)
	if diff := cmp.Diff(first, schedule(services, before)); diff != "" {
		t.Fatalf("a reload moves what is due:\n%s", diff)
	}
}

// A pass that is under way goes on with the old plan while a new one is made.
func TestCompileWhileAPassRuns(t *testing.T) {
	services := members(30)
	before := measure.Compile(services, nil)
	helds := holdAll(before, services, nil)
	const sweep = 30 * time.Second
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for pass := range 10 {
				at := now.Add(time.Duration(pass) * sweep)
				for _, h := range helds {
					qs := h.Due(at, sweep)
					h.Keep(qs, healthy(qs))
					qs = h.Follow(at, sweep)
					h.Keep(qs, healthy(qs))
					batched(t, h.Due(at, sweep), 10, func(measure.Request) measure.Reading { return measure.Reading{} })
					h.Measured(at, sweep)
				}
			}
		})
	}
	plans := before
	for i := range 10 {
		services[i].Digest += "changed"
		plans = measure.Compile(services, plans)
		for name, h := range holdAll(plans, services, helds) {
			if qs := h.Due(now, sweep); len(qs) == 0 {
				t.Errorf("%s: no judge window is due", name)
			} else {
				h.Keep(qs, healthy(qs))
			}
		}
	}
	wg.Wait()
}

func TestHeldKeepsItsValuesOverAReload(t *testing.T) {
	const sweep = 30 * time.Second
	svc := member(1)
	plans := measure.Compile([]spec.Service{svc}, nil)
	held := measure.Hold(plans.Service(svc.Name), nil)
	if measure.Hold(plans.Service(svc.Name), held) != held {
		t.Error("the same plan was given another Held")
	}
	qs := held.Due(now, sweep)
	held.Keep(qs, healthy(qs))
	was := held.Measured(now, sweep)

	reloaded := measure.Compile([]spec.Service{svc, member(2)}, plans)
	kept := measure.Hold(reloaded.Service(svc.Name), held)
	if diff := cmp.Diff(was, kept.Measured(now, sweep)); diff != "" {
		t.Errorf("a reload of the same documents changed what is held (-before +after):\n%s", diff)
	}
	// A pass that was under way ends in the new one, and leaves the old alone.
	bad := healthy(qs)
	for i := range bad {
		bad[i].Reason = measure.SourceError
	}
	kept.Keep(qs, bad)
	for _, m := range kept.Measured(now, sweep) {
		if m.Known() {
			t.Errorf("an answer to a query from before the reload was lost: %+v", m)
		}
	}
	if diff := cmp.Diff(was, held.Measured(now, sweep)); diff != "" {
		t.Errorf("what is kept in the new Held stands in the old one (-before +after):\n%s", diff)
	}

	svc.Digest = "another"
	anew := measure.Hold(measure.Compile([]spec.Service{svc}, reloaded).Service(svc.Name), kept)
	if ms := anew.Measured(now, sweep); len(ms) != 0 {
		t.Errorf("changed documents were given the values of the old: %+v", ms)
	}
	anew.Keep(qs, was)
	if ms := anew.Measured(now, sweep); len(ms) != 0 {
		t.Errorf("an answer to the old documents stands under the new ones: %+v", ms)
	}
}

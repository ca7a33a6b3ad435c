package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// place is one window of one objective and vantage point, whatever the instant.
type place struct {
	objective      string
	vantage        int
	window, before time.Duration
	totalOnly      bool
}

func placeOf(id measure.ID, now time.Time) place {
	return place{id.Objective, id.Vantage, id.Window, measure.Instant(now).Sub(id.At), id.TotalOnly}
}

// truth is what Held should know of the places of one service.
type truth struct {
	service spec.Service
	sweep   time.Duration
	places  []place
	born    time.Time
	last    map[place]measure.Measurement // what was kept last
	at      map[place]time.Time           // the instant of the pass that asked for it
}

func newTruth(svc spec.Service, sweep time.Duration) *truth {
	tr := &truth{service: svc, sweep: sweep}
	for _, id := range ids(measure.Pass(svc, now)) {
		tr.places = append(tr.places, placeOf(id, now))
	}
	tr.restart()
	return tr
}

func (tr *truth) restart() {
	tr.born, tr.last, tr.at = time.Time{}, map[place]measure.Measurement{}, map[place]time.Time{}
}

func (tr *truth) objective(p place) spec.Objective {
	i := slices.IndexFunc(tr.service.Objectives, func(o spec.Objective) bool { return o.ID == p.objective })
	return tr.service.Objectives[i]
}

func (tr *truth) isJudge(p place) bool {
	return !p.totalOnly && p.window == tr.objective(p).JudgeWindow
}

func (tr *truth) isHourBefore(p place) bool {
	return p.totalOnly && p.window == time.Hour && p.before == tr.objective(p).JudgeWindow
}

// covers is the shortest long window that the place shows to be covered: those
// within the judge window share one place.
func (tr *truth) covers(p place) time.Duration {
	o := tr.objective(p)
	if !p.totalOnly || p.window != o.JudgeWindow {
		return 0
	}
	shortest := time.Duration(0)
	take := func(w time.Duration) {
		if max(w-o.JudgeWindow, 0) == p.before && (shortest == 0 || w < shortest) {
			shortest = w
		}
	}
	take(o.Window)
	for _, b := range o.BurnRates {
		take(b.Long)
	}
	return shortest
}

// decides: the judge window, the windows of page pairs and their coverage, and
// the hour before.
func (tr *truth) decides(p place) bool {
	o := tr.objective(p)
	for _, b := range o.BurnRates {
		if b.Page && (!p.totalOnly && (p.window == b.Short || p.window == b.Long) ||
			p.totalOnly && p.window == o.JudgeWindow && p.before == max(b.Long-o.JudgeWindow, 0)) {
			return true
		}
	}
	return tr.isJudge(p) || tr.isHourBefore(p)
}

// onDemand: the hour before is asked only where traffic is low, unless it shows
// which groups vanished.
func (tr *truth) onDemand(p place) bool {
	return tr.isHourBefore(p) && tr.covers(p) == 0 && len(tr.objective(p).GroupBy) == 0
}

// longest is how old a value may ever be. A window that data covers stays so.
func (tr *truth) longest(p place) time.Duration {
	if c := tr.covers(p); c > 0 && tr.last[p].Known() {
		return max(tr.sweep, min(c/6, 6*time.Hour))
	} else if c > 0 {
		return max(tr.sweep, c/60)
	}
	return max(tr.sweep, p.window/60)
}

func (tr *truth) keep(now time.Time, qs []measure.Query, ms []measure.Measurement) {
	for i, q := range qs {
		p := placeOf(q.ID, now)
		if newer := measure.Instant(tr.at[p]).Sub(measure.Instant(now)); newer > 0 && newer <= 5*time.Second {
			continue // another look was later
		}
		tr.last[p], tr.at[p] = ms[i], now
	}
}

func (tr *truth) judge(p place) measure.Measurement {
	return tr.last[place{p.objective, p.vantage, tr.objective(p).JudgeWindow, 0, false}]
}

// follows reports whether Follow should ask, after the judge window was kept.
func (tr *truth) follows(p place, now time.Time) bool {
	o, judge := tr.objective(p), tr.judge(p)
	if !judge.Known() || tr.at[p].Equal(now) {
		return false
	}
	var low, misses bool
	for _, m := range append(groupsOf(judge), judge) {
		low = low || m.Known() && m.HasEvents && (m.Total == 0 || m.Total < o.MinEvents)
		misses = misses || m.Known() && m.ErrorRatio > 1-o.Target
	}
	if tr.isHourBefore(p) && (low || tr.covers(p) == 0) {
		return low
	}
	asked, was := tr.at[p]
	age := measure.Instant(now).Sub(measure.Instant(asked))
	if !tr.decides(p) || was && age < max(tr.sweep/2, max(p.window, tr.covers(p))/360) {
		return false
	}
	return misses || was && !p.totalOnly && tr.isNew(p)
}

// isNew reports whether the judge window has a group that the place has not.
func (tr *truth) isNew(p place) bool {
	held := tr.last[p]
	for _, g := range tr.judge(p).Groups {
		if g.Known() && held.Known() && held.Of(g.Name).Reason == measure.NoData {
			return true
		}
	}
	return false
}

func groupsOf(m measure.Measurement) []measure.Measurement {
	var out []measure.Measurement
	for _, g := range m.Groups {
		out = append(out, g.Measurement)
	}
	return out
}

const target = 0.9

func drawService(t *rapid.T) spec.Service {
	minute := time.Minute
	svc := service()
	for i := range rapid.IntRange(1, 2).Draw(t, "objectives") {
		o := objective()
		o.ID = fmt.Sprint("o", i)
		o.JudgeWindow = rapid.SampledFrom([]time.Duration{minute, 5 * minute, 60 * minute}).Draw(t, "judge")
		o.Window = rapid.SampledFrom([]time.Duration{6 * time.Hour, 168 * time.Hour, 720 * time.Hour}).Draw(t, "window")
		o.Target, o.BurnRates = target, nil
		length := rapid.SampledFrom([]time.Duration{minute, 5 * minute, 30 * minute, 60 * minute, 120 * minute, 360 * minute})
		for range rapid.IntRange(0, 3).Draw(t, "pairs") {
			o.BurnRates = append(o.BurnRates, spec.BurnRate{
				Short: length.Draw(t, "short"), Long: length.Draw(t, "long"), Page: rapid.Bool().Draw(t, "page"),
			})
		}
		if rapid.Bool().Draw(t, "grouped") {
			o.GroupBy = []string{"host"}
		}
		if rapid.Bool().Draw(t, "two vantage points") {
			o.Others = []spec.Indicator{o.Indicator}
		}
		svc.Objectives = append(svc.Objectives, o)
	}
	svc.Digest = "one"
	return svc
}

func drawAnswer(t *rapid.T, q measure.Query, grouped bool) measure.Measurement {
	m := measure.Measurement{ID: q.ID, Source: q.Source, SampleAt: q.ID.At, HasEvents: true, Good: 1000, Total: 1000}
	switch rapid.IntRange(0, 7).Draw(t, "answer") {
	case 0:
		m.Reason = rapid.SampledFrom([]measure.Reason{measure.NoData, measure.SourceError}).Draw(t, "reason")
		m.HasEvents, m.Good, m.Total = false, 0, 0
	case 1:
		m.Total = rapid.SampledFrom([]float64{0, 49, 50}).Draw(t, "events")
	case 2:
		m.ErrorRatio = 0.5
	case 3:
		one := 1.0
		m.ErrorRatio = one - target // exactly, rounded as it is at run time
	}
	if grouped && m.Known() && rapid.IntRange(0, 3).Draw(t, "groups") > 0 {
		for _, name := range []string{"a", "b"} {
			if rapid.IntRange(0, 4).Draw(t, name) > 0 {
				m.Groups = append(m.Groups, measure.NamedGroup{Name: name, Measurement: drawAnswer(t, q, false)})
			}
		}
	}
	return m
}

func (tr *truth) answers(t *rapid.T, qs []measure.Query) []measure.Measurement {
	ms := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		ms[i] = drawAnswer(t, q, len(tr.objective(placeOf(q.ID, now)).GroupBy) > 0)
	}
	return ms
}

func (tr *truth) names(qs []measure.Query, now time.Time) []string {
	var out []string
	for _, q := range qs {
		out = append(out, fmt.Sprintf("%+v", placeOf(q.ID, now)))
	}
	slices.Sort(out)
	return out
}

// checkDue: what must be asked is asked.
func (tr *truth) checkDue(t *rapid.T, due, shown []measure.Query, now time.Time) {
	if tr.born.IsZero() || tr.born.After(now) {
		tr.born = now
	}
	dueNames, shownNames := tr.names(due, now), tr.names(shown, now)
	if all := slices.Concat(dueNames, shownNames); len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Fatalf("asked twice: %v", all)
	}
	for _, p := range tr.places {
		name := fmt.Sprintf("%+v", p)
		isDue, isShown := slices.Contains(dueNames, name), slices.Contains(shownNames, name)
		if decides := tr.decides(p); decides && isShown || !decides && isDue {
			t.Fatalf("%s: decides %t, due %t, shown %t", name, decides, isDue, isShown)
		}
		asked, was := tr.at[p]
		age := measure.Instant(now).Sub(measure.Instant(asked))
		must := tr.isJudge(p) || !tr.onDemand(p) && (was && (age < 0 || age >= tr.longest(p)) ||
			!was && (tr.decides(p) || now.Sub(tr.born) >= 5*time.Minute))
		if must && !isDue && !isShown {
			t.Fatalf("%s is not asked at %s, %s after it was (%t)", name, now, age, was)
		}
	}
}

// checkMeasured: what is handed out is the last answer, and no older than it
// may be.
func (tr *truth) checkMeasured(t *rapid.T, ms []measure.Measurement, now time.Time) {
	got := map[place]bool{}
	for _, m := range ms {
		p := placeOf(m.ID, now)
		asked, was := tr.at[p]
		if !was || got[p] {
			t.Fatalf("%+v was never asked, or is handed out twice", p)
		}
		got[p] = true
		age := measure.Instant(now).Sub(measure.Instant(asked))
		if age > tr.longest(p) || age < -5*time.Second {
			t.Fatalf("%+v is handed out %s after it was asked, %s at most", p, age, tr.longest(p))
		}
		want := tr.last[p]
		want.ID, want.AsOf = m.ID, measure.Instant(asked).Add(-p.before)
		if diff := gocmp.Diff(want, m); diff != "" {
			t.Fatalf("%+v is not the last answer (-want +got):\n%s", p, diff)
		}
	}
	for _, p := range tr.places {
		asked, was := tr.at[p]
		if age := now.Sub(asked); was && tr.last[p].Known() && age >= 0 && age < tr.longest(p) && !got[p] {
			t.Fatalf("%+v is not handed out, %s after it was asked", p, age)
		}
	}
}

func TestHeldProperties(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		svc := drawService(t)
		tr := newTruth(svc, rapid.SampledFrom([]time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute}).Draw(t, "sweep"))
		plans := measure.Compile([]spec.Service{svc}, nil)
		held := measure.Hold(plans.Service(svc.Name), nil)
		at := now
		for range rapid.IntRange(1, 30).Draw(t, "passes") {
			switch rapid.IntRange(0, 20).Draw(t, "between") {
			case 0:
				at = at.Add(time.Duration(rapid.IntRange(0, 4*3600).Draw(t, "pause")) * time.Second)
			case 1:
				at = at.Add(-time.Duration(rapid.IntRange(0, 3600).Draw(t, "set back")) * time.Second)
			case 2:
				held = measure.Hold(plans.Service(svc.Name), nil)
				tr.restart()
			case 3:
				plans = measure.Compile([]spec.Service{svc}, plans)
				held = measure.Hold(plans.Service(svc.Name), held)
			}
			jitter := float64(rapid.IntRange(-100, 100).Draw(t, "jitter")) / 1000
			at = at.Add(tr.sweep + time.Duration(jitter*float64(tr.sweep)))

			due, shown := held.Due(at, tr.sweep), held.Shown(at, tr.sweep)
			tr.checkDue(t, due, shown, at)
			if slow := held.Slow(at, tr.sweep); slow != slices.ContainsFunc(due, func(q measure.Query) bool { return q.ID.Window > time.Hour }) {
				t.Fatalf("slow is %t with %v due", slow, tr.names(due, at))
			}
			keep := func(qs []measure.Query) {
				ms := tr.answers(t, qs)
				held.Keep(qs, ms)
				tr.keep(at, qs, ms)
			}
			if rapid.IntRange(0, 9).Draw(t, "pass is cut off") > 0 {
				keep(due)
				var want []string
				for _, p := range tr.places {
					if tr.follows(p, at) {
						want = append(want, fmt.Sprintf("%+v", p))
					}
				}
				follow := held.Follow(at, tr.sweep)
				slices.Sort(want)
				if diff := gocmp.Diff(strings.Join(want, "\n"), strings.Join(tr.names(follow, at), "\n")); diff != "" {
					t.Fatalf("asked besides (-want +got):\n%s", diff)
				}
				keep(follow)
				seen["follow"] += len(follow)
			}
			if rapid.IntRange(0, 3).Draw(t, "shown are answered") > 0 {
				keep(shown)
			}
			tr.checkMeasured(t, held.Measured(at, tr.sweep), at)
			seen["due"], seen["shown"] = seen["due"]+len(due), seen["shown"]+len(shown)
		}
	})
	for _, kind := range []string{"due", "follow", "shown"} {
		if seen[kind] < 100 {
			t.Errorf("%s queries were seen %d times only: the test tests little", kind, seen[kind])
		}
	}
}

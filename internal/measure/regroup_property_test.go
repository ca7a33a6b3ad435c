package measure_test

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// regroupTally says how much of what was drawn said anything.
type regroupTally struct {
	drawn, refused, alone, failed, grouped, singles, withSeries, series, crossed int
	reasons                                                                      map[string]int
}

// A grouped answer, dealt out, is the single answers: the labels, the values,
// what is missing. Asked of the real engine, for whatever can be grouped.
func TestGroupedAnswerIsTheSingleAnswers(t *testing.T) {
	engines := []*promql.Engine{worldEngine(t, false), worldEngine(t, true)}
	sum := regroupTally{reasons: map[string]int{}}
	rapid.Check(t, func(t *rapid.T) {
		sum.drawn++
		g := grammar{t}
		template := g.vector(rapid.IntRange(0, 3).Draw(t, "depth"))
		seed := rapid.Uint64().Draw(t, "seed") + uint64(crc32.ChecksumIEEE([]byte(template)))
		engine := engines[rapid.IntRange(0, 1).Draw(t, "engine")]
		r := rand.New(rand.NewPCG(seed, 1))
		services, zones := drawValues(r), drawValues(r)
		db := newWorld(seed, services, zones)
		exprs := fillInMembers(r, template, services, zones)
		checkGroup(t, engine, db, exprs, &sum)
	})
	t.Logf("%+v", sum)
	if sum.grouped*5 < sum.drawn || sum.withSeries*10 < sum.singles || sum.failed*3 > sum.grouped {
		t.Errorf("too little was said to prove anything: %+v", sum)
	}
}

// drawValues gives some distinct values.
func drawValues(r *rand.Rand) []string {
	var out []string
	for range 1 + r.IntN(3) {
		if v := oddValue(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// fillInMembers fills the template in for several services and zones, some of which
// the world knows nothing of. Often they share the zone.
func fillInMembers(r *rand.Rand, template string, services, zones []string) []string {
	services = append(slices.Concat(services, services), "unheard of")
	if r.IntN(20) == 0 {
		services = append(services, "") // which is no equality that can vary
	}
	zones = append(slices.Concat(zones, zones), "nowhere")
	zone := zones[r.IntN(len(zones))]
	shared := r.IntN(2) == 0
	var out []string
	for range 2 + r.IntN(4) {
		svc := services[r.IntN(len(services))]
		if !shared {
			zone = zones[r.IntN(len(zones))]
		}
		out = append(out, fillIn(template, svc, zone, []string{"2", "1.0", "+Inf"}[r.IntN(3)]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func checkGroup(t *rapid.T, engine *promql.Engine, db world, exprs []string, sum *regroupTally) {
	byKey := map[string][]string{}
	values := map[string][]string{}
	for _, e := range exprs {
		shape, vs, reason := measure.Analyse(e)
		if reason != "" {
			if reason == "not-parsed" {
				t.Fatalf("the grammar draws what is no PromQL: %s", e)
			}
			sum.refused++
			sum.reasons[reason]++
			continue
		}
		byKey[shape.Key()] = append(byKey[shape.Key()], e)
		values[e] = vs
	}
	for _, same := range byKey {
		if len(same) == 1 {
			sum.alone++
			continue
		}
		ms := make([][]string, len(same))
		for i, e := range same {
			ms[i] = values[e]
		}
		grouped, err := measure.Group(same[len(same)/2], ms)
		if err != nil {
			t.Fatalf("group %q: %v", same, err)
		}
		answer, err := answerOf(engine, db, grouped.Expr)
		if err != nil {
			if strings.Contains(err.Error(), "parse error") {
				t.Fatalf("%s: %v", grouped.Expr, err)
			}
			sum.failed++ // One member's fault, or that of a series that is nobody's.
			continue
		}
		sum.grouped++
		compareSingles(t, engine, db, same, grouped, answer, sum)
	}
}

func compareSingles(
	t *rapid.T, engine *promql.Engine, db world, exprs []string, grouped measure.Grouped, answer []measure.Sample, sum *regroupTally,
) {
	before := fmt.Sprint(answer)
	parts := grouped.Split(answer)
	if fmt.Sprint(answer) != before {
		t.Fatalf("Split changed what it was given")
	}
	dealt := 0
	for i, e := range exprs {
		single, err := answerOf(engine, db, e)
		if err != nil {
			t.Fatalf("%s: the group answers, but alone: %v\ngrouped: %s", e, err, grouped.Expr)
		}
		sum.singles++
		sum.series += len(single)
		dealt += len(parts[i])
		if len(single) > 0 {
			sum.withSeries++
		}
		if diff := sampleDiff(single, parts[i]); diff != "" {
			t.Fatalf("%s\nalone:   %v\ngrouped: %s\nanswer:  %v\npart:    %v\n%s", e, single, grouped.Expr, answer, parts[i], diff)
		}
	}
	if dealt < len(answer) {
		sum.crossed++
	}
}

// sampleDiff compares two answers as sets.
func sampleDiff(want, got []measure.Sample) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d series, want %d", len(got), len(want))
	}
	byMetric := map[string]measure.Sample{}
	for _, s := range got {
		byMetric[s.Metric.String()] = s
	}
	for _, w := range want {
		g, ok := byMetric[w.Metric.String()]
		switch {
		case !ok:
			return fmt.Sprintf("no series %s", w.Metric)
		case len(w.Metric) != len(g.Metric) || w.Histogram != g.Histogram || !w.At.Equal(g.At) || !nearly(w.Value, g.Value):
			return fmt.Sprintf("got %+v, want %+v", g, w)
		}
	}
	return ""
}

// nearly allows for another order of summation.
func nearly(a, b float64) bool {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b))
}

package measure_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// The world that random expressions are asked of: counters, gauges, classic
// and native histograms of several services, with all that real data has.

// worldPoint is a sample of either kind.
type worldPoint struct {
	at    int64
	value float64
	hist  *histogram.FloatHistogram
}

func (p worldPoint) T() int64                { return p.at }
func (p worldPoint) ST() int64               { return 0 }
func (p worldPoint) F() float64              { return p.value }
func (p worldPoint) H() *histogram.Histogram { return nil }
func (p worldPoint) Copy() chunks.Sample     { return p }

// FH is a copy, as a database decodes one for each reader.
func (p worldPoint) FH() *histogram.FloatHistogram { return p.hist.Copy() }

func (p worldPoint) Type() chunkenc.ValueType {
	if p.hist != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// world is series in memory, sorted by their labels.
type world []worldSeries

type worldSeries struct {
	labels labels.Labels
	points []chunks.Sample
}

func (s world) Querier(mint, maxt int64) (storage.Querier, error) {
	return worldQuerier{db: s, mint: mint, maxt: maxt}, nil
}

type worldQuerier struct {
	storage.LabelQuerier

	db         world
	mint, maxt int64
}

func (worldQuerier) Close() error { return nil }

func (q worldQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := &worldSet{at: -1}
	for _, s := range q.db {
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			continue
		}
		from, _ := slices.BinarySearchFunc(s.points, q.mint, func(p chunks.Sample, t int64) int { return int(p.T() - t) })
		to, _ := slices.BinarySearchFunc(s.points, q.maxt+1, func(p chunks.Sample, t int64) int { return int(p.T() - t) })
		if from < to {
			set.all = append(set.all, storage.NewListSeries(s.labels, s.points[from:to]))
		}
	}
	return set
}

type worldSet struct {
	all []storage.Series
	at  int
}

func (s *worldSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *worldSet) At() storage.Series                { return s.all[s.at] }
func (s *worldSet) Err() error                        { return nil }
func (s *worldSet) Warnings() annotations.Annotations { return nil }

// oddValues are label values that a regular expression, a string or a person
// may stumble over.
var oddValues = []string{
	"a", "b", "a|b", "x.*", `q"uote\d`, "line\nbreak", "übung-日本", "(", "$", "A", "a ", `\`, "[a-z]+", "^", "\x00", "1.0", "+Inf",
}

// oddValue is one of few or one of many values.
func oddValue(r *rand.Rand) string {
	if r.IntN(3) > 0 {
		return oddValues[r.IntN(4)]
	}
	return oddValues[r.IntN(len(oddValues))]
}

var worldTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newWorld makes series for services and zones, some of which have no series,
// or only of some metrics, or several.
func newWorld(seed uint64, services, zones []string) world {
	r := rand.New(rand.NewPCG(seed, 7))
	var out world
	seen := map[uint64]bool{}
	add := func(ls labels.Labels, make func(*rand.Rand) []chunks.Sample) {
		if r.IntN(5) == 0 || seen[ls.Hash()] {
			return
		}
		seen[ls.Hash()] = true
		out = append(out, worldSeries{labels: ls, points: make(r)})
	}
	for _, svc := range append([]string{""}, services...) {
		for _, zone := range append([]string{""}, zones...) {
			if r.IntN(4) == 0 {
				continue
			}
			for i := range 1 + r.IntN(2) {
				common := []string{"svc", svc, "zone", zone, "inst", fmt.Sprint(i), "my.label", "u"}
				with := func(more ...string) labels.Labels { return labels.FromStrings(append(more, common...)...) }
				for _, code := range []string{"200", "500"} {
					add(with("__name__", "a_total", "code", code, "job", "j"), counterPoints)
					add(with("__name__", "b_total", "code", code), counterPoints)
				}
				add(with("__name__", "g", "job", "j"), gaugePoints)
				add(with("__name__", "n"), nativePoints)
				var total []chunks.Sample
				for _, le := range []string{"+Inf", "2", "1.0"} {
					add(with("__name__", "d_bucket", "le", le), func(r *rand.Rand) []chunks.Sample {
						total = smaller(r, total)
						return total
					})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b worldSeries) int { return labels.Compare(a.labels, b.labels) })
	return out
}

// scrapes are scrapes of the last 20 minutes with gaps; the last may be long
// ago, or a few may lie in the future of the query.
func scrapes(r *rand.Rand) []int64 {
	step := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}[r.IntN(3)]
	from := worldTime.Add(-time.Duration(r.IntN(1200)) * time.Second)
	to := worldTime.Add(time.Minute)
	if r.IntN(4) == 0 {
		to = worldTime.Add(-time.Duration(r.IntN(600)) * time.Second)
	}
	var out []int64
	for t := from; t.Before(to); t = t.Add(step) {
		if r.IntN(10) == 0 {
			t = t.Add(time.Duration(r.IntN(10)) * step) // a gap
		}
		out = append(out, t.UnixMilli()+r.Int64N(50))
	}
	return out
}

func counterPoints(r *rand.Rand) []chunks.Sample {
	var out []chunks.Sample
	v := float64(r.IntN(1000))
	for _, t := range scrapes(r) {
		v += float64(r.IntN(8))
		p := worldPoint{at: t, value: v}
		switch r.IntN(40) {
		case 0:
			v = 0 // a restart
		case 1:
			p.value = math.Float64frombits(value.StaleNaN)
		}
		out = append(out, p)
	}
	return out
}

func gaugePoints(r *rand.Rand) []chunks.Sample {
	var out []chunks.Sample
	special := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e300, 0.1, math.Float64frombits(value.StaleNaN),
	}
	for _, t := range scrapes(r) {
		p := worldPoint{at: t, value: float64(r.IntN(40)-8) / 4}
		if n := r.IntN(60); n < len(special) {
			p.value = special[n]
		}
		out = append(out, p)
	}
	return out
}

// smaller gives a bucket below another: never more events.
func smaller(r *rand.Rand, of []chunks.Sample) []chunks.Sample {
	if of == nil {
		return counterPoints(r)
	}
	out := make([]chunks.Sample, len(of))
	for i, s := range of {
		out[i] = worldPoint{at: s.T(), value: math.Floor(s.F() * 0.75)}
	}
	return out
}

func nativePoints(r *rand.Rand) []chunks.Sample {
	var out []chunks.Sample
	n := float64(r.IntN(10))
	for _, t := range scrapes(r) {
		n += float64(r.IntN(4))
		h := &histogram.FloatHistogram{
			Schema: int32(r.IntN(2)), ZeroThreshold: 0.001, ZeroCount: n, Count: 4 * n, Sum: 9 * n,
			PositiveSpans:   []histogram.Span{{Offset: 0, Length: 2}},
			PositiveBuckets: []float64{2 * n, n},
		}
		p := worldPoint{at: t, hist: h}
		if r.IntN(30) == 0 { // a float among histograms
			p.hist, p.value = nil, n
		}
		out = append(out, p)
	}
	return out
}

func worldEngine(t testing.TB, delayedNames bool) *promql.Engine {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		EnableDelayedNameRemoval: delayedNames,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		Parser:                   parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true}),
	})
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

// answerOf runs one instant query and gives its samples as a source would.
func answerOf(engine *promql.Engine, db world, expr string) ([]measure.Sample, error) {
	q, err := engine.NewInstantQuery(context.Background(), db, nil, expr, worldTime)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		return nil, err
	}
	out := make([]measure.Sample, len(v))
	for i, s := range v {
		out[i] = measure.Sample{Metric: model.Metric{}, Value: s.F, At: time.UnixMilli(s.T).UTC()}
		if s.H != nil {
			out[i].Histogram, out[i].Value = true, s.H.Sum+1e6*s.H.Count
		}
		s.Metric.Range(func(l labels.Label) { out[i].Metric[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
	}
	return out, nil
}

package measure_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// database is series in memory, enough for the real PromQL engine.
type database []series

type series struct {
	labels  labels.Labels
	samples []sample
}

type sample struct {
	at    time.Time
	value float64
}

func (s sample) T() int64                      { return s.at.UnixMilli() }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func (d database) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{db: d, mint: mint, maxt: maxt}, nil
}

type querier struct {
	storage.LabelQuerier

	db         database
	mint, maxt int64
}

func (q querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, s := range q.db {
		if !matches(s.labels, ms) {
			continue
		}
		var in []chunks.Sample
		for _, x := range s.samples {
			if x.T() >= q.mint && x.T() <= q.maxt {
				in = append(in, x)
			}
		}
		if len(in) > 0 {
			set.all = append(set.all, storage.NewListSeries(s.labels, in))
		}
	}
	return set
}

func matches(ls labels.Labels, ms []*labels.Matcher) bool {
	for _, m := range ms {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// engine is one for all tests: it keeps nothing between queries.
var engine = sync.OnceValue(func() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true}),
	})
})

// evaluate runs one instant query on the real engine.
func evaluate(t *testing.T, db database, expr string, at time.Time) promql.Vector {
	t.Helper()
	v, err := db.query(expr, at)
	if err != nil {
		t.Fatalf("evaluate %s: %v", expr, err)
	}
	return v
}

func (d database) query(expr string, at time.Time) (promql.Vector, error) {
	q, err := engine().NewInstantQuery(context.Background(), d, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	return slices.Clone(v), err
}

// answer is what a source with this data reads out for a request.
func (d database) answer(r measure.Request) measure.Reading {
	v, err := d.query(r.Expr, r.At)
	if err != nil {
		return measure.Reading{Reason: measure.QueryError, Detail: err.Error()}
	}
	var out measure.Reading
	for _, s := range v {
		metric := model.Metric{}
		for name, text := range s.Metric.Map() {
			metric[model.LabelName(name)] = model.LabelValue(text)
		}
		out.Series = append(out.Series, measure.Sample{
			Metric: metric, Value: s.F, At: time.UnixMilli(s.T).UTC(), Histogram: s.H != nil,
		})
	}
	return out
}

// fatal is what *testing.T and *rapid.T have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// maxRounds is more than any query needs: how many counts are recorded, the
// counts, the raw ones, the oldest sample.
const maxRounds = 5

// batched measures queries in groups of at most chunk, as ask answers them.
func batched(t fatal, qs []measure.Query, chunk int, ask func(measure.Request) measure.Reading) []measure.Measurement {
	t.Helper()
	b := measure.NewBatch(qs)
	for range maxRounds {
		rs := b.Requests(func(string, time.Duration) int { return chunk })
		if len(rs) == 0 {
			return b.Measurements()
		}
		for _, r := range rs {
			b.Put(r, ask(r))
		}
	}
	t.Fatalf("the batch still asks after %d rounds", maxRounds)
	return nil
}

// asked are the expressions that are sent for queries when nothing is there,
// with the age of their instants.
func asked(t fatal, qs []measure.Query, chunk int) map[string]time.Duration {
	t.Helper()
	out := map[string]time.Duration{}
	batched(t, qs, chunk, func(r measure.Request) measure.Reading {
		out[r.Expr] = now.Sub(r.At)
		return measure.Reading{}
	})
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func compareIDs(a, b measure.ID) int {
	return cmp.Or(cmp.Compare(a.Window, b.Window), a.At.Compare(b.At), cmp.Compare(a.Service, b.Service))
}

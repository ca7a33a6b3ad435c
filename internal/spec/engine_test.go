package spec_test

import (
	"context"
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
)

// database is series in memory, enough for the real PromQL engine.
type database []storage.Series

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

func (d database) Querier(_, _ int64) (storage.Querier, error) { return querier{db: d}, nil }

type querier struct {
	storage.LabelQuerier

	db database
}

func (q querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, s := range q.db {
		matches := true
		for _, m := range ms {
			matches = matches && m.Matches(s.Labels().Get(m.Name))
		}
		if matches {
			set.all = append(set.all, s)
		}
	}
	return set
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

var engineNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counters is a database of the metrics a, b and c over all values of the
// labels x and y but one, each an hour of a counter of its own slope.
func counters() database {
	var db database
	for i, name := range []string{"a", "b", "c"} {
		for j, x := range []string{"", "1", "2"} {
			for k, y := range []string{"", "1", "2"} {
				if i == 2 && j == k {
					continue
				}
				var samples []chunks.Sample
				for n := range 120 {
					samples = append(samples, sample{
						at: engineNow.Add(time.Duration(n-119) * 30 * time.Second), value: float64(n * (1 + i + 3*j + 7*k)),
					})
				}
				db = append(db, storage.NewListSeries(labels.FromStrings(model.MetricNameLabel, name, "x", x, "y", y).WithoutEmpty(), samples))
			}
		}
	}
	return db
}

// engine evaluates instant queries on the real engine.
type engine struct {
	promql *promql.Engine
	db     database
}

func newEngine(t *testing.T) engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true}),
	})
	t.Cleanup(func() { _ = e.Close() })
	return engine{promql: e, db: counters()}
}

func (e engine) ask(ctx context.Context, expr string) (promql.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.db, nil, expr, engineNow)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	v, err := q.Exec(ctx).Vector()
	return append(promql.Vector{}, v...), err
}

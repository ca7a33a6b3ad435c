package measure_test

import (
	"context"
	"testing"
	"time"

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

// evaluate runs one instant query on the real engine.
func evaluate(t *testing.T, db database, expr string, at time.Time) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { _ = engine.Close() })
	q, err := engine.NewInstantQuery(t.Context(), db, nil, expr, at)
	if err != nil {
		t.Fatalf("parse %s: %v", expr, err)
	}
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("evaluate %s: %v", expr, err)
	}
	out := make(promql.Vector, len(v))
	copy(out, v)
	return out
}

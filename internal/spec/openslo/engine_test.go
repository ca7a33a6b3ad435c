package openslo_test

import (
	"context"
	"math"
	"slices"
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

// point is one sample of a series.
type point struct {
	at    time.Time
	value float64
}

func (p point) T() int64                      { return p.at.UnixMilli() }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// series are samples in memory, enough for the real PromQL engine.
type series struct {
	labels labels.Labels
	points []point
}

type database []series

func (d database) Querier(from, to int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, s := range d {
			if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				continue
			}
			var in []chunks.Sample
			for _, p := range s.points {
				if p.T() >= from && p.T() <= to {
					in = append(in, p)
				}
			}
			if len(in) > 0 {
				found = append(found, storage.NewListSeries(s.labels, in))
			}
		}
		return &seriesSet{all: found, at: -1}
	}}, nil
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series                { return s.all[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// newEngine is Prometheus's own engine.
func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// failer is a test or a rapid test.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ask gives the value of each series, by its labels as text. NaN is written as
// text too, because it equals nothing.
func ask(t failer, e *promql.Engine, db database, expr string, at time.Time) map[string]any {
	t.Helper()
	q, err := e.NewInstantQuery(context.Background(), db, nil, expr, at)
	if err != nil {
		t.Fatalf("parse %s: %v", expr, err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatalf("evaluate %s: %v", expr, err)
	}
	out := map[string]any{}
	for _, s := range v {
		out[s.Metric.String()] = s.F
		if math.IsNaN(s.F) {
			out[s.Metric.String()] = "NaN"
		}
	}
	return out
}

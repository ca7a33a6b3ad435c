package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	dto "github.com/prometheus/client_model/go"
)

// series are those that the last scrape of a job held, by their labels as
// text: what ends when it is not seen again.
type series map[string]labels.Labels

// sample is one line of a metrics page.
type sample struct {
	labels labels.Labels
	v      float64
	// t is zero unless the page itself names a time.
	t int64
}

// Ingest stores what a registry holds at a simulated instant, as one scrape of
// a job. A nil gatherer is a scrape that failed: the series of the job end
// there, as the scrape manager ends them. A gatherer that fails is one too, and
// its error is returned besides.
func (e *Engine) Ingest(at time.Time, job string, g prometheus.Gatherer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("ingest %s: the engine is closed", job)
	}
	var (
		samples []sample
		failed  error
		up      float64
	)
	if g != nil {
		families, err := g.Gather()
		if err != nil {
			failed = fmt.Errorf("gather %s: %w", job, err)
		} else {
			samples, up = flatten(families, job), 1
		}
	}
	app := e.db.AppenderV2(context.Background())
	seen, err := e.scrape(app, job, at.UnixMilli(), samples, up)
	if err != nil {
		return errors.Join(failed, fmt.Errorf("ingest %s at %s: %w", job, at.UTC().Format(time.RFC3339Nano), err), app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return errors.Join(failed, fmt.Errorf("ingest %s at %s: %w", job, at.UTC().Format(time.RFC3339Nano), err))
	}
	e.jobs[job] = seen
	return failed
}

// scrape appends the samples, the ends of the series that are gone, and up.
func (e *Engine) scrape(app storage.AppenderV2, job string, t int64, samples []sample, up float64) (series, error) {
	seen := series{}
	for _, s := range samples {
		at := t
		if s.t != 0 {
			at = s.t
		}
		if err := add(app, s.labels, at, s.v); err != nil {
			return nil, err
		}
		// A series with times of its own is never ended, as with a server.
		if s.t == 0 {
			seen[s.labels.String()] = s.labels
		}
	}
	for key, ls := range e.jobs[job] {
		if _, ok := seen[key]; ok {
			continue
		}
		if err := add(app, ls, t, math.Float64frombits(value.StaleNaN)); err != nil {
			return nil, err
		}
	}
	// up is the server's own word: it goes on while a job fails.
	return seen, add(app, labels.FromStrings(model.MetricNameLabel, "up", model.JobLabel, job), t, up)
}

func add(app storage.AppenderV2, ls labels.Labels, t int64, v float64) error {
	if _, err := app.Append(0, ls, 0, t, v, nil, nil, storage.AOptions{RejectOutOfOrder: true}); err != nil {
		return fmt.Errorf("%s: %w", ls, err)
	}
	return nil
}

// flatten gives the lines of a metrics page with the label that the server
// adds.
func flatten(families []*dto.MetricFamily, job string) []sample {
	var out []sample
	for _, f := range families {
		for _, m := range f.GetMetric() {
			l := line{m: m, name: f.GetName(), job: job}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				l.add("", m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				l.add("", m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
				l.histogram(m.GetHistogram())
			case dto.MetricType_SUMMARY:
				l.summary(m.GetSummary())
			default:
				l.add("", m.GetUntyped().GetValue())
			}
			out = append(out, l.out...)
		}
	}
	return out
}

// line collects the lines of one metric.
type line struct {
	m    *dto.Metric
	name string
	job  string
	out  []sample
}

func (l *line) add(suffix string, v float64, extra ...string) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, p := range l.m.GetLabel() {
		name := p.GetName()
		// The server's own label wins, and the exporter's is kept beside it.
		if name == model.JobLabel {
			name = model.ExportedLabelPrefix + name
		}
		b.Set(name, p.GetValue())
	}
	b.Set(model.MetricNameLabel, l.name+suffix).Set(model.JobLabel, l.job)
	for i := 0; i+1 < len(extra); i += 2 {
		b.Set(extra[i], extra[i+1])
	}
	l.out = append(l.out, sample{labels: b.Labels(), v: v, t: l.m.GetTimestampMs()})
}

func (l *line) histogram(h *dto.Histogram) {
	infinite := false
	for _, b := range h.GetBucket() {
		infinite = infinite || math.IsInf(b.GetUpperBound(), 1)
		l.add("_bucket", float64(b.GetCumulativeCount()), model.BucketLabel, labels.FormatOpenMetricsFloat(b.GetUpperBound()))
	}
	if !infinite {
		l.add("_bucket", float64(h.GetSampleCount()), model.BucketLabel, "+Inf")
	}
	l.add("_sum", h.GetSampleSum())
	l.add("_count", float64(h.GetSampleCount()))
}

func (l *line) summary(s *dto.Summary) {
	for _, q := range s.GetQuantile() {
		l.add("", q.GetValue(), model.QuantileLabel, labels.FormatOpenMetricsFloat(q.GetQuantile()))
	}
	l.add("_sum", s.GetSampleSum())
	l.add("_count", float64(s.GetSampleCount()))
}

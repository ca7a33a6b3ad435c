package prom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
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
		if samples, failed = page(g, job); failed != nil {
			failed = fmt.Errorf("gather %s: %w", job, failed)
		} else {
			up = 1
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

// page reads what a gatherer gives in the way of a scrape: as the text of a
// metrics page, with the server's own label on each line.
func page(g prometheus.Gatherer, job string) ([]sample, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return nil, err
		}
	}
	p := textparse.NewPromParser(text.Bytes(), labels.NewSymbolTable(), false)
	var out []sample
	for {
		switch entry, err := p.Next(); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case entry != textparse.EntrySeries:
			continue
		}
		var s sample
		p.Labels(&s.labels)
		var t *int64
		if _, t, s.v = p.Series(); t != nil {
			s.t = *t
		}
		s.labels = label(s.labels, job)
		out = append(out, s)
	}
}

// label adds the server's own label. It wins over the exporter's, which is kept
// beside it.
func label(ls labels.Labels, job string) labels.Labels {
	b := labels.NewBuilder(ls)
	if theirs := ls.Get(model.JobLabel); theirs != "" {
		b.Set(model.ExportedLabelPrefix+model.JobLabel, theirs)
	}
	return b.Set(model.JobLabel, job).Labels()
}

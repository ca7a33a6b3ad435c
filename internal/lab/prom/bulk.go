package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// Bulk writes the same series scrape after scrape, past the text of a metrics
// page: millions of samples in seconds. It is not safe for concurrent use.
type Bulk struct {
	engine *Engine
	series []labels.Labels
	refs   []storage.SeriesRef
}

// Bulk begins to write the series. The caller no longer changes the slice.
func (e *Engine) Bulk(series []labels.Labels) *Bulk {
	return &Bulk{engine: e, series: series, refs: make([]storage.SeriesRef, len(series))}
}

// Ended is the value that ends a series, as a scrape that no longer finds it.
func Ended() float64 { return math.Float64frombits(value.StaleNaN) }

// Scrape stores one value for each series at one instant, which is later than
// the one before. NaN is no sample; Ended ends the series.
func (b *Bulk) Scrape(at time.Time, values []float64) error {
	if len(values) != len(b.series) {
		return fmt.Errorf("bulk at %s: %d values for %d series", at.UTC().Format(time.RFC3339Nano), len(values), len(b.series))
	}
	app := b.engine.db.AppenderV2(context.Background())
	t := at.UnixMilli()
	for i, v := range values {
		if math.IsNaN(v) && !value.IsStaleNaN(v) {
			continue
		}
		ref, err := app.Append(b.refs[i], b.series[i], 0, t, v, nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil {
			return errors.Join(fmt.Errorf("bulk %s at %s: %w", b.series[i], at.UTC().Format(time.RFC3339Nano), err), app.Rollback())
		}
		b.refs[i] = ref
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("bulk at %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return nil
}

package prom

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// Fleet is every configured source; the first is the default.
type Fleet struct {
	sources []*Source
	byName  map[string]*Source
}

// NewFleet returns a router over the sources.
func NewFleet(sources ...*Source) (*Fleet, error) {
	if len(sources) == 0 {
		return nil, errors.New("no source: name at least one in sources")
	}
	f := &Fleet{sources: sources, byName: map[string]*Source{"": sources[0]}}
	for _, s := range sources {
		if _, ok := f.byName[s.Name()]; ok {
			return nil, fmt.Errorf("source %q is named twice or not at all: give each its own name in sources", s.Name())
		}
		f.byName[s.Name()] = s
	}
	return f, nil
}

// Source returns a source by its name; "" is the default one.
func (f *Fleet) Source(name string) (*Source, bool) {
	s, ok := f.byName[name]
	return s, ok
}

// Measure asks each query of its source, all sources at once, and answers one
// for one and in order.
func (f *Fleet) Measure(ctx context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	mine := map[*Source][]int{}
	for i, q := range qs {
		s, ok := f.byName[q.Source]
		if !ok {
			out[i] = measure.Measurement{
				ID: q.ID, Source: q.Source, Reason: measure.QueryError,
				Detail: fmt.Sprintf("source %q is not in setpoint.yaml", printable(q.Source)),
			}
			continue
		}
		mine[s] = append(mine[s], i)
	}
	var wg sync.WaitGroup
	for s, indices := range mine {
		wg.Go(func() {
			part := make([]measure.Query, len(indices))
			for j, i := range indices {
				part[j] = qs[i]
			}
			for j, m := range s.Measure(ctx, part) {
				out[indices[j]] = m
			}
		})
	}
	wg.Wait()
	return out
}

// Clocks gives how far the clock of each source is ahead of this host's; one that
// does not answer in time has none.
func (f *Fleet) Clocks(ctx context.Context) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, c := range f.ClockReadings(ctx) {
		if c.Err == nil {
			out[c.Source] = c.Offset
		}
	}
	return out
}

// ClockReadings reads every source's clock at once, in the order of setpoint.yaml.
// It takes two seconds at most, however slow a source is.
func (f *Fleet) ClockReadings(ctx context.Context) []ClockReading {
	out := make([]ClockReading, len(f.sources))
	var wg sync.WaitGroup
	for i, s := range f.sources {
		wg.Go(func() { out[i] = s.Clock(ctx) })
	}
	wg.Wait()
	return out
}

package prom

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/patience"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// Ask asks one expression of one source at one instant, for evidence; "" is the
// default source.
func (f *Fleet) Ask(ctx context.Context, source, expr string, at time.Time) measure.Reading {
	s, ok := f.byName[source]
	if !ok {
		return measure.Reading{Reason: measure.QueryError, Detail: fmt.Sprintf("source %q is not in setpoint.yaml", printable(source))}
	}
	return s.AskAside(ctx, expr, at)
}

// AskAside asks what decides nothing. It keeps to the source's limits and leaves
// a slot to what is measured, where there are two. Nothing that comes of it is
// held against the source or for it: an expensive breakdown that never answers
// must not lead to a rest in which nothing can be measured. A source that is left
// alone, or was not tried since, is not asked.
func (s *Source) AskAside(ctx context.Context, expr string, at time.Time) measure.Reading {
	if s.health.Gate(s.opts.Now()) == patience.Ajar {
		return reading(ended("not asked, the source has not answered since its last fault"))
	}
	select {
	case s.aside <- struct{}{}:
		defer func() { <-s.aside }()
	case <-ctx.Done():
		return reading(ended("not asked, its time was over first"))
	}
	limit := s.opts.Timeout
	if end, ok := ctx.Deadline(); ok {
		// The source need not go on when nobody waits.
		limit = max(min(limit, time.Until(end)), time.Millisecond)
	}
	return reading(s.turn(ctx, func(ctx context.Context) wire.Answer {
		return s.call(ctx, limit, func(ctx context.Context) wire.Answer {
			return s.query(ctx, expr, at, limit).At(at)
		})
	}))
}

package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// clockDeadline bounds the reading of a clock. An answer is that long under way
// at most, so a reading is wrong by half of it at most, far less than the 5 s
// at which clocks count as apart. A source that is slower has no reading: that
// it is slow says nothing about its clock.
const clockDeadline = 2 * time.Second

// ClockReading is what one source's clock shows. It holds nothing when Err is
// set.
type ClockReading struct {
	Source string
	// Time is the source's own.
	Time time.Time
	// Offset is how far the source is ahead of this host, whose time is the
	// middle between sending the question and having the answer.
	Offset time.Duration
	Err    error
}

// Clock reads the source's clock. Host, store and source clocks that differ by
// more than 5 s hold everything. The time is that of the sample: a server
// which evaluates a little in the past still stamps its present. A source that
// is left alone has no reading.
func (s *Source) Clock(ctx context.Context) ClockReading {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, clockDeadline)
	defer cancel()
	var sent time.Time
	var took time.Duration
	a := s.turn(ctx, func(ctx context.Context) wire.Answer {
		return s.call(ctx, min(clockDeadline, s.opts.Timeout), func(ctx context.Context) wire.Answer {
			sent = s.opts.Now()
			a := s.query(ctx, "time()", time.Time{}, clockDeadline)
			took = s.opts.Now().Sub(sent)
			return a
		})
	})
	s.sawClock(a.Fault)
	switch {
	case a.Fault.Is() && ctx.Err() != nil && outer.Err() == nil:
		return s.noClock(fmt.Errorf("no answer within %s", clockDeadline))
	case a.Fault.Is():
		return s.noClock(clockFault(a.Fault))
	case len(a.Series) != 1:
		return s.noClock(fmt.Errorf("%s: %d samples, want 1", measure.NoData, len(a.Series)))
	case took < 0:
		return s.noClock(errors.New("this host's clock was set back in between"))
	case took > clockDeadline:
		return s.noClock(fmt.Errorf("the answer took %s, longer than %s", took.Round(time.Millisecond), clockDeadline))
	}
	at := a.Series[0].At
	return ClockReading{Source: s.opts.Name, Time: at, Offset: at.Sub(sent.Add(took / 2))}
}

// sawClock: an answer shows that the source can be asked again. That it took
// longer than a clock may says nothing.
func (s *Source) sawClock(f wire.Fault) {
	switch f.Kind {
	case wire.None:
		s.health.Answered()
	case wire.Slow:
	default:
		s.health.Saw(f, s.opts.Now())
	}
}

func clockFault(f wire.Fault) error { return fmt.Errorf("%s: %s", f.Reason, f.Detail) }

func (s *Source) noClock(err error) ClockReading {
	return ClockReading{Source: s.opts.Name, Err: fmt.Errorf("clock of source %q: %w", s.opts.Name, err)}
}

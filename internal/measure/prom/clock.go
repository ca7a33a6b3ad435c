package prom

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
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
// which evaluates a little in the past still stamps its present.
func (s *Source) Clock(ctx context.Context) ClockReading {
	ctx, cancel := context.WithTimeout(ctx, clockDeadline)
	defer cancel()
	out := ClockReading{Source: s.opts.Name}
	var sent time.Time
	var took time.Duration
	r := s.call(ctx, func(ctx context.Context) reading {
		sent = s.opts.Now()
		v, warnings, infos, err := s.api.Query(ctx, "time()", time.Time{}, v1.WithTimeout(clockDeadline))
		took = s.opts.Now().Sub(sent)
		if err != nil {
			return s.fault(ctx, err, min(clockDeadline, s.opts.Timeout))
		}
		switch v := v.(type) {
		case *model.Scalar:
			out.Time = v.Timestamp.Time().UTC()
		case model.Vector:
			if len(v) == 1 {
				out.Time = v[0].Timestamp.Time().UTC()
			}
		}
		return interpret(v, warnings, infos)
	})
	var err error
	switch {
	case r.reason != "":
		err = fmt.Errorf("%s: %s", r.reason, r.detail)
	case took < 0:
		err = errors.New("this host's clock was set back in between")
	case took > clockDeadline:
		err = fmt.Errorf("the answer took %s, longer than %s", took.Round(time.Millisecond), clockDeadline)
	}
	if err != nil {
		return ClockReading{Source: s.opts.Name, Err: fmt.Errorf("clock of source %q: %w", s.opts.Name, err)}
	}
	out.Offset = out.Time.Sub(sent.Add(took / 2))
	return out
}

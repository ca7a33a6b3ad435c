package prom

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// Retention is how long the server keeps samples; false where it does not say,
// as for everything but Prometheus itself.
func (s *Source) Retention(ctx context.Context) (time.Duration, bool) {
	var kept time.Duration
	s.about(ctx, func(ctx context.Context) error {
		flags, err := s.status.Flags(ctx)
		if err != nil {
			return err
		}
		if kept = retention(flags["storage.tsdb.retention.time"]); kept > 0 {
			return nil
		}
		// The flag is 0 where the default holds, or a configuration file says it.
		info, err := s.status.Runtimeinfo(ctx)
		if err != nil {
			return err
		}
		kept = retention(info.StorageRetention)
		return nil
	})
	return kept, kept > 0
}

// retention reads "15d", or the time in "15d or 10GiB".
func retention(text string) time.Duration {
	for part := range strings.SplitSeq(text, " or ") {
		if d, err := model.ParseDuration(strings.TrimSpace(part)); err == nil && d > 0 {
			return time.Duration(d)
		}
	}
	return 0
}

// Version is what the server calls itself; false where it does not say.
func (s *Source) Version(ctx context.Context) (string, bool) {
	var version string
	s.about(ctx, func(ctx context.Context) error {
		info, err := s.status.Buildinfo(ctx)
		version = printable(info.Version)
		return err
	})
	return version, version != ""
}

// about asks the server about itself. That it has no such page is no fault.
func (s *Source) about(ctx context.Context, ask func(context.Context) error) {
	s.turn(ctx, func(ctx context.Context) wire.Answer {
		return s.call(ctx, s.opts.Timeout, func(ctx context.Context) wire.Answer {
			if err := ask(ctx); err != nil {
				return wire.Answer{Fault: transport(err)}
			}
			return wire.Answer{}
		})
	})
}

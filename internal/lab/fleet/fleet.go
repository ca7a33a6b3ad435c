package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// End is when a fleet's last scrape is, unless its options say otherwise: far
// from the real clock, so that a use of that one shows.
func End() time.Time { return time.Date(2100, 6, 1, 12, 0, 0, 0, time.UTC) }

// Options describe a fleet. What is zero has the default that is named.
type Options struct {
	// Dir holds the samples; it is the caller's to remove.
	Dir string
	// Services is how many there are (1).
	Services int
	// Instances is how many report for each service (1), each with two counter
	// series: one of code 200 and one of 500.
	Instances int
	// Shapes is how many metric names the services are spread over (1). SLOs
	// over one name differ only in the value of an equality matcher.
	Shapes int
	// Interval is between two scrapes (15 s).
	Interval time.Duration
	// Span is how much history there is (90 m).
	Span time.Duration
	// End is the time of the last scrape (End()).
	End time.Time
	// Rate is requests per second and instance, on the whole (10).
	Rate float64
	// Errors is the share of requests that fail (0.0002).
	Errors float64
	// Broken is how many services, the first ones, fail every fifth request in
	// the last hour.
	Broken int
	// Spiky puts 99 % of the requests into 1 % of the time, while most errors
	// are in the rest of it: whoever averages ratios is wrong several-fold.
	Spiky bool
	// Histogram adds a classic histogram of durations to each instance.
	Histogram bool
	// Target of each SLO (0.999) and its Period (30 d).
	Target float64
	Period time.Duration
	// BurnRates replace the default ones.
	BurnRates []spec.BurnRate
	// Seed chooses another fleet of the same kind.
	Seed uint64
	// Retention is what the server keeps, and says; zero is the engine's own.
	Retention time.Duration
}

func (o Options) withDefaults() Options {
	atLeast := func(n *int, least int) { *n = max(*n, least) }
	orElse(&o.Interval, 15*time.Second)
	orElse(&o.Span, 90*time.Minute)
	orElse(&o.Period, 30*24*time.Hour)
	orElse(&o.Rate, 10)
	orElse(&o.Errors, 0.0002)
	orElse(&o.Target, 0.999)
	atLeast(&o.Services, 1)
	atLeast(&o.Instances, 1)
	atLeast(&o.Shapes, 1)
	if o.End.IsZero() {
		o.End = End()
	}
	return o
}

func orElse[T int | float64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Fleet is a Prometheus that scraped the services, and what they promise.
type Fleet struct {
	Engine *prom.Engine
	// Clock is the server's; it begins at the last scrape.
	Clock *Clock
	// Options are those that it was made with, defaults filled in.
	Options Options
}

// New loads the samples of a fleet. It holds the samples of one scrape at a
// time, whatever the span is.
func New(o Options) (*Fleet, error) {
	o = o.withDefaults()
	clock := &Clock{}
	clock.Set(o.End)
	engine, err := prom.New(prom.Options{
		Dir: o.Dir, Now: clock.Now, Retention: o.Retention,
		// One block, so that nothing is compacted while something is measured.
		Block: max(2*o.Span, 2*time.Hour),
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	f := &Fleet{Engine: engine, Clock: clock, Options: o}
	if err := f.load(); err != nil {
		_ = engine.Close()
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return f, nil
}

// Close closes the engine.
func (f *Fleet) Close() error { return f.Engine.Close() }

// Begin is the time of the first scrape.
func (f *Fleet) Begin() time.Time {
	return f.Options.End.Add(-f.Options.Span.Truncate(f.Options.Interval))
}

// End is the time of the last scrape.
func (f *Fleet) End() time.Time { return f.Options.End }

// Name is the name of the service with that index, from 0.
func Name(i int) string { return fmt.Sprintf("svc-%05d", i+1) }

// Metric is the name of the counter of the service with that index.
func (o Options) Metric(i int) string {
	if shape := i % max(o.Shapes, 1); shape > 0 {
		return fmt.Sprintf("http_requests_%d_total", shape)
	}
	return "http_requests_total"
}

// load writes scrape after scrape.
func (f *Fleet) load() error {
	p := newPage(f.Options)
	bulk := f.Engine.Bulk(p.series)
	values := make([]float64, len(p.series))
	for at := f.Begin(); !at.After(f.Options.End); at = at.Add(f.Options.Interval) {
		p.scrape(at, values)
		if err := bulk.Scrape(at, values); err != nil {
			return err
		}
	}
	return nil
}

// Ratio asks the engine for the error ratio of a service over a window that
// ends at one instant, past its HTTP API: the truth to compare with.
func (f *Fleet) Ratio(ctx context.Context, i int, window time.Duration, at time.Time) (float64, error) {
	sel := fmt.Sprintf("%s{service=%q", f.Options.Metric(i), Name(i))
	w := model.Duration(window)
	expr := fmt.Sprintf(`sum(increase(%[1]s,code=~"5.."}[%[2]s])) / sum(increase(%[1]s}[%[2]s]))`, sel, w)
	v, ok, err := f.Engine.Value(ctx, expr, at)
	if err != nil {
		return 0, fmt.Errorf("fleet: %w", err)
	}
	if !ok {
		return 0, fmt.Errorf("fleet: %s has no requests in the %s before %s", Name(i), w, at)
	}
	return v, nil
}

package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// BenchmarkBreachToEffect is B8: from the moment at which a source would show a
// breach to the effect in the actuator's journal, in sweep intervals, with a
// proposer that answers at once, a real ledger and a real webhook on loopback.
// The loop is the real one in real time, swept every half second without jitter,
// after a warm-up. Breaches come uniformly over the interval, one in two of them: of two
// in one sweep one may lose its claim to the other, and waits for the next.
//
//	sweep   p50 at most 0.55, p99 at most 1.05
//	hint    an Alertmanager hint comes with the breach: at most 0.1
func BenchmarkBreachToEffect(b *testing.B) {
	for _, how := range []string{"sweep", "hint"} {
		b.Run(how, func(b *testing.B) {
			var delays []float64
			for range paceRounds {
				delays = append(delays, breachToEffect(b, how)...)
			}
			slices.Sort(delays)
			at := func(q float64) float64 { return delays[min(len(delays)-1, int(q*float64(len(delays))))] }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(at(0.5), "p50-intervals")
			b.ReportMetric(at(0.99), "p99-intervals")
			b.ReportMetric(float64(len(delays)), "N")
		})
	}
}

const (
	// Few services at a time, because a sweep over many takes a part of so short an
	// interval.
	paceRounds, paceSamples = 4, 50

	paceInterval = 500 * time.Millisecond
)

// breachToEffect breaks one service after another and gives the delay of each.
func breachToEffect(b *testing.B, how string) []float64 {
	b.Helper()
	w := prepare(b)
	w.real = true
	w.cfg.Sweep = config.Sweep{Interval: paceInterval, Concurrency: 8}
	w.cfg.Limits.StormMin, w.cfg.Limits.StormFraction = 10*paceSamples, 1
	w.cfg.Limits.EffectsPerHour, w.cfg.Budget.Capacity = 10*paceSamples, 10*paceSamples
	burning := &burns{since: map[string]time.Time{}}
	w.options = func(o *reconcile.Options) { o.Measurer = burning }
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range paceSamples {
		svc := one
		svc.Name = fmt.Sprintf("s%03d", i)
		svc.Remediation.Service, svc.Remediation.HoldFor = svc.Name, time.Second
		// The windows are to the interval what 5m and 1h are to the default of 30s,
		// because how long a value is held follows from both.
		o := one.Objectives[0]
		o.JudgeWindow, o.MinEvents = 10*paceInterval, 1
		o.BurnRates = []spec.BurnRate{{Short: 10 * paceInterval, Long: 120 * paceInterval, Factor: 6, Page: true}}
		svc.Objectives = []spec.Objective{o}
		svc.Remediation.Actions = slices.Clone(one.Remediation.Actions)
		a := &svc.Remediation.Actions[0]
		a.Target.URL += "/" + svc.Name // One target cannot be changed for several at a time.
		a.Target.StatusURL, a.Settle = a.Target.URL, time.Millisecond
		w.set.Services = append(w.set.Services, svc)
	}
	w.start()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.r.Run(ctx) }()
	w.soonAll("met and held", paceSamples, func(sv ledger.Service) bool { return sv.DocumentsSettled(time.Second, time.Now()) })
	broke := map[string]time.Time{}
	// A hint is not held up by a sweep, so those may come closer.
	spacing := 2.0
	if how == "hint" {
		spacing = 1
	}
	// Spread evenly, in no order: chance alone would move the median of so few.
	var place []float64
	for i := range paceSamples {
		place = append(place, (float64(i)+rand.Float64())/paceSamples) //nolint:gosec // Only spread.
	}
	rand.Shuffle(len(place), func(i, j int) { place[i], place[j] = place[j], place[i] })
	start := time.Now()
	for i, svc := range w.set.Services {
		at := start.Add(time.Duration(float64(paceInterval) * (spacing*float64(i) + place[i])))
		time.Sleep(time.Until(at))
		broke[svc.Name] = burning.begin(svc.Name)
		if how == "hint" {
			w.r.Hint(svc.Name)
		}
	}
	time.Sleep(3 * paceInterval)
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	var delays []float64
	for _, e := range w.actuator.Effects() {
		delays = append(delays, float64(e.Time.Sub(broke[e.Service]))/float64(paceInterval))
	}
	if len(delays) != paceSamples {
		b.Fatalf("%d effects for %d breaches", len(delays), paceSamples)
	}
	return delays
}

// soonAll waits until the ledger says something of n services.
func (w *world) soonAll(what string, n int, ok func(sv ledger.Service) bool) {
	w.t.Helper()
	w.soon(what, func(s *ledger.State) bool {
		found := 0
		for _, sv := range s.Services {
			if ok(*sv) {
				found++
			}
		}
		return found == n
	})
}

// burns is a source that shows a breach in every window from a moment on, for as
// long as a pass may need.
type burns struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (s *burns) begin(service string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[service] = time.Now()
	return s.since[service]
}

func (s *burns) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		since, is := s.since[q.ID.Service]
		ratio, at := 0.0, q.ID.At.Sub(since.Truncate(time.Millisecond))
		if is && at >= 0 && at < 5*paceInterval {
			ratio = 0.3
		}
		out[i] = measure.Measurement{
			ID: q.ID, Source: "main", HasEvents: true, Total: 1000, Good: 1000 * (1 - ratio), ErrorRatio: ratio, SampleAt: q.ID.At,
		}
	}
	return out
}

func (s *burns) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{"main": 0}
}

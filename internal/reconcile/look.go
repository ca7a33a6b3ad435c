package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// watch is the compiled queries of all services, and what was measured last.
type watch struct {
	mu    sync.Mutex
	plans *measure.Plans
	held  map[string]*measure.Held
}

// load compiles the documents. What did not change keeps its values.
func (w *watch) load(set spec.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans = measure.Compile(set.Services, w.plans)
	held := make(map[string]*measure.Held, len(set.Services))
	for _, svc := range set.Services {
		held[svc.Name] = measure.Hold(w.plans.Service(svc.Name), w.held[svc.Name])
	}
	w.held = held
}

// of is what is held of a service; nil when the documents were changed and have
// it no longer.
func (w *watch) of(service string) (*measure.Held, *measure.Plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[service], w.plans.Service(service)
}

// which chooses what to ask about one service at now.
type which func(w *watch, service string, now time.Time, sweep time.Duration) []measure.Query

// due are the windows whose cadence is over.
func (w *watch) due(service string, now time.Time, sweep time.Duration) []measure.Query {
	if held, _ := w.of(service); held != nil {
		return held.Due(now, sweep)
	}
	return nil
}

// shown are the windows that decide nothing and whose cadence is over.
func (w *watch) shown(service string, now time.Time, sweep time.Duration) []measure.Query {
	if held, _ := w.of(service); held != nil {
		return held.Shown(now, sweep)
	}
	return nil
}

// slow reports whether a long window of the service is due.
func (w *watch) slow(service string, now time.Time, sweep time.Duration) bool {
	held, _ := w.of(service)
	return held != nil && held.Slow(now, sweep)
}

// renew are all windows that decide.
func (w *watch) renew(service string, now time.Time, sweep time.Duration) []measure.Query {
	if held, _ := w.of(service); held != nil {
		return held.Renew(now, sweep)
	}
	return nil
}

// all are all windows.
func (w *watch) all(service string, now time.Time, _ time.Duration) []measure.Query {
	_, plan := w.of(service)
	return plan.Pass(now)
}

// measure asks what is chosen about some services at one instant, then what the
// answers make necessary.
func (r *Reconciler) measure(ctx context.Context, services []spec.Service, now time.Time, choose which) {
	sweep := r.o.Config.Sweep.Interval
	r.ask(ctx, services, func(service string) []measure.Query { return choose(&r.watch, service, now, sweep) })
	r.ask(ctx, services, func(service string) []measure.Query {
		if held, _ := r.watch.of(service); held != nil {
			return held.Follow(now, sweep)
		}
		return nil
	})
}

// assess compares some services with what is known of them now. One that cannot
// be assessed is unknown, and takes no other along.
func (r *Reconciler) assess(services []spec.Service, now time.Time, into map[string]compare.Assessment) {
	limits, set := r.compareLimits(), measure.Set{}
	var ms []measure.Measurement // and the set are used again, because a fleet has many services
	for _, svc := range services {
		into[svc.Name] = compare.Assessment{Service: svc.Name, At: now, State: compare.Unknown, Reason: measure.NotMeasured}
		r.guard("assessing "+svc.Name, func() {
			ms = ms[:0]
			if held, _ := r.watch.of(svc.Name); held != nil {
				ms = held.AppendMeasured(ms, now, r.o.Config.Sweep.Interval)
			}
			set.Refill(r.trusted(ms))
			into[svc.Name] = compare.Assess(svc, set, limits, now)
		})
	}
}

// judged compares some services that were measured just now, and asks afresh
// about those that change.
func (r *Reconciler) judged(ctx context.Context, services []spec.Service, now time.Time) map[string]compare.Assessment {
	out := make(map[string]compare.Assessment, len(services))
	r.assess(services, now, out)
	r.assess(r.confirm(ctx, services, out, now), now, out)
	return out
}

// confirm asks afresh about the services whose recorded state would change, and
// returns them. A change is never recorded from values that are held: replicas
// hold values of different ages, and would take turns.
func (r *Reconciler) confirm(ctx context.Context, services []spec.Service, fresh map[string]compare.Assessment, now time.Time) []spec.Service {
	if r.o.LedgerFault != nil || r.book.broken() != nil {
		return nil
	}
	var asked []spec.Service
	r.book.view(func(s *ledger.State) {
		for _, svc := range services {
			a := fresh[svc.Name]
			if known, seen := s.Service(svc.Name); seen && a.State != compare.Unknown && differs(known, a) {
				asked = append(asked, svc)
			}
		}
	})
	r.ask(ctx, asked, func(service string) []measure.Query {
		if held, _ := r.watch.of(service); held != nil {
			return held.Refresh(now)
		}
		return nil
	})
	return asked
}

// ask sends the queries of some services together, and keeps the answers.
func (r *Reconciler) ask(ctx context.Context, services []spec.Service, choose func(service string) []measure.Query) {
	var qs []measure.Query
	ends := make([]int, len(services))
	for i, svc := range services {
		// A service whose queries cannot be planned is unknown, and takes no other
		// along.
		r.guard("planning "+svc.Name, func() { qs = append(qs, choose(svc.Name)...) })
		ends[i] = len(qs)
	}
	if len(qs) == 0 {
		return
	}
	ms := r.o.Measurer.Measure(ctx, qs)
	begin := 0
	for i, svc := range services {
		if held, _ := r.watch.of(svc.Name); held != nil {
			held.Keep(qs[begin:ends[i]], ms[begin:ends[i]])
		}
		begin = ends[i]
	}
}

// show asks for the windows that are only shown. What decides is not waiting for
// it: a month of samples can take a source longer than a sweep.
func (r *Reconciler) show(ctx context.Context, services []spec.Service) {
	now, sweep := r.o.Now(), r.o.Config.Sweep.Interval
	r.ask(ctx, services, func(service string) []measure.Query { return r.watch.shown(service, now, sweep) })
}

// look measures some services at one instant, all their queries at once, and
// asks the sources for their time beside it.
func (r *Reconciler) look(ctx context.Context, set spec.Set, services []spec.Service, now time.Time) *fleet {
	return r.lookWith(ctx, set, services, now, (*watch).due)
}

func (r *Reconciler) lookWith(ctx context.Context, set spec.Set, services []spec.Service, now time.Time, choose which) *fleet {
	ctx, span := r.o.Tracer.Start(ctx, "measure")
	defer span.End()
	r.watchForGap(ctx, services, now)
	var clocks sync.WaitGroup
	clocks.Go(func() { r.clocks.saw(r.o.Measurer.Clocks(ctx)) })
	r.measure(ctx, services, now, choose)
	clocks.Wait()
	fresh := r.judged(ctx, services, now)
	return &fleet{set: set, assessments: r.saw(fresh), clocksApart: r.clocksApart()}
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Run makes passes until ctx ends; then it takes no new work and returns when
// what was begun is said.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.Start(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { r.stopping.Store(true) })
	defer stop()
	// What is under way is finished although ctx ended: a measurement that was
	// cut short would read as unknown, and a send as in doubt.
	work := context.WithoutCancel(ctx)
	for !r.stopping.Load() {
		r.guard("sweep", func() { r.Sweep(work) })
		r.wait(ctx, work)
	}
	return nil
}

// guard keeps the loop alive through a fault of one part of it. A fault that
// stays shows in the age of the last completed sweep, on which an alert rule
// outside pages.
func (r *Reconciler) guard(what string, f func()) (done bool) {
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("panic in the loop", "in", what, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// wait makes early passes until the next sweep is due or ctx ends.
func (r *Reconciler) wait(ctx, work context.Context) {
	timer := time.NewTimer(r.jittered())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case service := <-r.wake:
			r.guard("early pass", func() { r.early(work, service) })
		}
	}
}

// Start records what a start changes: the documents, and that nobody watched.
func (r *Reconciler) Start(ctx context.Context) error {
	if err := r.recordDocuments(ctx, r.Set()); err != nil {
		return err
	}
	return r.recordGap(ctx, "start")
}

func (r *Reconciler) recordGap(ctx context.Context, why string) error {
	_, err := r.book.append(ctx, func(*ledger.State) ([]ledger.Draft, error) {
		return []ledger.Draft{{Kind: ledger.KindGap, Body: ledger.Gap{Why: why}}}, nil
	})
	return err
}

// jittered spreads the sweeps of many agents over one interval.
func (r *Reconciler) jittered() time.Duration {
	s := r.o.Config.Sweep
	spread := s.Jitter * (2*rand.Float64() - 1)
	return time.Duration(float64(s.Interval) * (1 + spread))
}

// Sweep makes one pass for each service now and returns when all ended.
func (r *Reconciler) Sweep(ctx context.Context) []Result {
	now := r.o.Now()
	if err := r.book.catchUp(ctx); err != nil {
		r.log.Error("the ledger cannot be read; observing only", "error", err)
	}
	r.watchForGap(ctx, now)
	r.syncFreezes(ctx)
	r.endOrphans(ctx)
	f := r.look(ctx, r.Set(), now)
	results := make([]Result, len(f.set.Services))
	g := new(errgroup.Group)
	g.SetLimit(max(1, r.o.Config.Sweep.Concurrency))
	for i, svc := range f.set.Services {
		g.Go(func() error {
			results[i] = r.one(ctx, f, svc, now)
			return nil
		})
	}
	_ = g.Wait() // one returns no error: each result carries its own
	if !r.guard("notices", func() { r.notices(ctx, f, r.o.Now()) }) {
		return results // not a completed sweep: nobody may have been told
	}
	r.mu.Lock()
	r.swept = now
	r.mu.Unlock()
	r.tel.swept(r.o.Now(), r.book.broken() == nil)
	r.book.view(func(s *ledger.State) { r.tel.folded(s, f.set, r.globalBudget(), now) })
	return results
}

// look measures the whole fleet at one instant.
func (r *Reconciler) look(ctx context.Context, set spec.Set, now time.Time) *fleet {
	ctx, span := r.o.Tracer.Start(ctx, "measure")
	defer span.End()
	var qs []measure.Query
	for _, svc := range set.Services {
		r.guard("planning "+svc.Name, func() { qs = append(qs, measure.Pass(svc, now)...) })
	}
	f := &fleet{
		set: set, assessments: map[string]compare.Assessment{},
		measured:    measure.NewSet(r.o.Measurer.Measure(ctx, qs)),
		clocksApart: clocksApart(r.o.Now(), r.o.Measurer.Clocks(ctx)),
	}
	for _, svc := range set.Services {
		// A service that cannot be assessed is unknown, and takes no other along.
		f.assessments[svc.Name] = compare.Assessment{Service: svc.Name, At: now, State: compare.Unknown, Reason: measure.NotMeasured}
		r.guard("assessing "+svc.Name, func() {
			f.assessments[svc.Name] = compare.Assess(svc, f.measured, r.compareLimits(), now)
		})
	}
	r.mu.Lock()
	r.assessed, r.apart = f.assessments, f.clocksApart
	r.mu.Unlock()
	return f
}

// watchForGap restarts holdFor when nobody looked for two sweeps: a pause of
// the process must not count as health.
func (r *Reconciler) watchForGap(ctx context.Context, now time.Time) {
	r.mu.Lock()
	swept := r.swept
	r.mu.Unlock()
	late := now.Sub(swept) > 2*r.o.Config.Sweep.Interval+r.o.Config.Sweep.Interval/2
	if swept.IsZero() || !late {
		return
	}
	r.tel.late()
	if err := r.recordGap(ctx, fmt.Sprintf("no pass for %s", now.Sub(swept).Round(time.Millisecond))); err != nil {
		r.log.Error("a gap could not be recorded", "error", err)
	}
}

// one makes one pass, isolated: a panic or an error of one service is its own
// result, and it is tried again later and later.
func (r *Reconciler) one(ctx context.Context, f *fleet, svc spec.Service, now time.Time) (res Result) {
	if r.stopping.Load() || r.backingOff(svc.Name, now) {
		return r.Last()[svc.Name]
	}
	began := r.o.Now()
	defer func() {
		if v := recover(); v != nil {
			res = Result{Service: svc.Name, Err: fmt.Errorf("panic in the pass of %s: %v", svc.Name, v)}
			r.log.Error("panic in a pass", "service", svc.Name, "panic", v, "stack", string(debug.Stack()))
		}
		r.finish(ctx, &res, began)
	}()
	ctx, span := r.o.Tracer.Start(ctx, "pass")
	defer span.End()
	res = r.newPass(f, svc, now).run(ctx)
	span.SetAttributes(attributes(res)...)
	return res
}

// finish keeps the result, and puts a failing service off, up to maxBackoff.
func (r *Reconciler) finish(ctx context.Context, res *Result, began time.Time) {
	interval := r.o.Config.Sweep.Interval
	res.RequeueAfter = interval
	r.mu.Lock()
	if res.Err != nil {
		r.errors[res.Service]++
		res.RequeueAfter = min(interval<<min(r.errors[res.Service], 10), max(maxBackoff, interval))
		r.again[res.Service] = began.Add(res.RequeueAfter)
	} else {
		delete(r.errors, res.Service)
		delete(r.again, res.Service)
	}
	r.last[res.Service] = *res
	r.mu.Unlock()
	if res.Err != nil && !errors.Is(res.Err, context.Canceled) {
		r.log.Error("pass failed", "service", res.Service, "error", res.Err, "again", res.RequeueAfter)
	}
	r.tel.passed(ctx, *res, r.o.Now().Sub(began))
	if r.o.OnPass != nil {
		r.o.OnPass(*res)
	}
}

// maxBackoff caps how long a failing service waits.
const maxBackoff = 5 * time.Minute

func (r *Reconciler) backingOff(service string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.again[service])
}

// Hint asks for an early pass of one service; unknown names, and hints sooner
// than hintInterval after the last, are ignored.
func (r *Reconciler) Hint(service string) {
	if _, ok := r.Set().Service(service); !ok {
		return
	}
	now := r.o.Now()
	r.mu.Lock()
	soon := now.Sub(r.hints[service]) < r.o.Config.Limits.HintInterval
	if !soon {
		r.hints[service] = now
	}
	r.mu.Unlock()
	if !soon {
		r.nudge(service)
	}
}

// nudge starts a pass at once; a full queue loses it, and the next sweep comes.
func (r *Reconciler) nudge(service string) {
	select {
	case r.wake <- service:
	default:
	}
}

// early makes a pass of one service between sweeps, measured afresh.
func (r *Reconciler) early(ctx context.Context, service string) {
	svc, ok := r.Set().Service(service)
	if !ok {
		return
	}
	now := r.o.Now()
	r.mu.Lock()
	f := &fleet{set: r.set, assessments: r.assessed, clocksApart: r.apart}
	r.mu.Unlock()
	f.assessments = withResult(f.assessments, r.one(ctx, f, svc, now))
	r.notices(ctx, f, r.o.Now())
}

// withResult is the fleet's assessments with a newer one of one service.
func withResult(m map[string]compare.Assessment, res Result) map[string]compare.Assessment {
	out := maps.Clone(m)
	if res.Err == nil {
		out[res.Service] = res.Assessment
	}
	return out
}

// Plan makes one pass of each named service (all when none is named) that
// writes nothing and sends nothing. With ask the configured proposer is asked,
// otherwise the rules.
func (r *Reconciler) Plan(ctx context.Context, services []string, ask bool) ([]Result, error) {
	set := r.Set()
	for _, name := range services {
		if _, ok := set.Service(name); !ok {
			return nil, fmt.Errorf("service %q: %w; setpoint get services lists them", name, ErrNotFound)
		}
	}
	now := r.o.Now()
	f := r.look(ctx, set, now)
	var out []Result
	for _, svc := range set.Services {
		if len(services) > 0 && !slices.Contains(services, svc.Name) {
			continue
		}
		p := r.newPass(f, svc, now)
		p.dry, p.askModel = true, ask
		r.reads.assume(svc.Name)
		out = append(out, p.run(ctx))
	}
	return out, nil
}

// syncFreezes copies freeze files into the ledger, and removes the file of
// each freeze that the ledger says was lifted.
func (r *Reconciler) syncFreezes(ctx context.Context) {
	files, err := r.o.Freezes.List()
	if err != nil {
		r.log.Error("the freeze folder cannot be read; that holds everything", "error", err)
		return
	}
	for _, f := range files {
		thawed := false
		r.book.view(func(s *ledger.State) { _, thawed = s.Thawed[f.ID] })
		if thawed {
			if err := r.o.Freezes.Remove(f.ID); err != nil {
				r.log.Error("a lifted freeze's file could not be removed", "freeze", f.ID, "error", err)
			}
			continue
		}
		if err := r.Freeze(ctx, f); err != nil {
			r.log.Error("a freeze could not be recorded; its file holds all the same", "freeze", f.ID, "error", err)
		}
	}
}

// endOrphans voids the tickets of services that no document names any more:
// nobody would execute them, and their buttons should not look alive.
func (r *Reconciler) endOrphans(ctx context.Context) {
	set := r.Set()
	var ends []ledger.TicketEnd
	r.book.view(func(s *ledger.State) {
		for _, name := range sortedKeys(s.Services) {
			if _, declared := set.Service(name); declared {
				continue
			}
			if t, open := s.OpenTicket(name); open {
				ends = append(ends, ledger.TicketEnd{Ticket: t.ID, State: approve.Void, Reason: "document-removed"})
			}
		}
	})
	for _, end := range ends {
		err := r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.TicketEndDraft(s, end) })
		if err != nil && !raced(err) {
			r.log.Error("the ticket of a removed service could not be ended", "ticket", end.Ticket, "error", err)
		}
	}
}

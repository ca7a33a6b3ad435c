package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Sweep makes one pass for each service now and returns when all ended and
// people were told. Run does the same without waiting for the slowest.
func (r *Reconciler) Sweep(ctx context.Context) []Result {
	r.audit(ctx)
	now := r.o.Now()
	r.keep(ctx)
	set := r.Set()
	r.show(ctx, set.Services)
	f := r.look(ctx, set, set.Services, now)
	r.orphans(ctx, f, now)
	results := make([]Result, len(set.Services))
	g := new(errgroup.Group)
	g.SetLimit(max(1, r.o.Config.Sweep.Concurrency))
	for i, svc := range set.Services {
		g.Go(func() error {
			results[i] = r.one(ctx, f, svc, now)
			return nil
		})
	}
	_ = g.Wait() // one returns no error: each result carries its own
	r.told(ctx, true)
	return results
}

// keep does what belongs to no service: the ledger's newest entries, a ledger
// that could not be written, freezes, and tickets that nobody owns.
func (r *Reconciler) keep(ctx context.Context) {
	if err := r.book.catchUp(ctx); err != nil {
		r.log.Error("the ledger cannot be read; observing only", "error", err)
	} else if r.book.broken() != nil {
		if err := r.recordGap(ctx, "", "the ledger could not be written"); err != nil {
			r.log.Error("the ledger cannot be written; observing only", "error", err)
		}
	}
	r.watchStore(ctx)
	r.watchClock(ctx)
	r.syncFreezes(ctx)
	r.endOrphans(ctx)
}

// audit verifies the part of the ledger that a checkpoint stood for.
func (r *Reconciler) audit(ctx context.Context) {
	if r.book.audited() {
		return
	}
	began := r.o.Now()
	if err := r.book.audit(ctx, r.checkpoint); err != nil {
		r.log.Error("the ledger could not be verified; nothing is claimed until it is", "error", err)
		return
	}
	r.log.Info("ledger verified", "entries", r.checkpoint.At.Seq, "took", r.o.Now().Sub(began))
}

// told tells people what they should know, and shows what the ledger holds.
func (r *Reconciler) told(ctx context.Context, wait bool) {
	now := r.o.Now()
	f := r.seen()
	if !r.guard("notices", func() { r.notices(ctx, f, now, wait) }) {
		return // nobody may have been told, so this is no completed sweep
	}
	r.mu.Lock()
	r.swept = now
	passed := r.passed
	r.mu.Unlock()
	r.tel.swept(passed, r.book.broken() == nil)
	r.tel.clocks(f.clocksApart)
	r.book.view(func(s *ledger.State) { r.tel.folded(s, f.set, r.globalBudget(), now) })
}

// seen is the fleet as it was last assessed.
func (r *Reconciler) seen() *fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &fleet{set: r.set, assessments: r.assessed, clocksApart: r.clocksApart()}
}

// saw joins fresh assessments with those of the other services, and remembers
// since when each state holds, for a time in which the ledger cannot.
func (r *Reconciler) saw(fresh map[string]compare.Assessment) map[string]compare.Assessment {
	r.mu.Lock()
	defer r.mu.Unlock()
	joined := make(map[string]compare.Assessment, len(r.assessed)+len(fresh))
	for name, a := range r.assessed {
		joined[name] = a
	}
	looked := r.o.Now()
	for name, a := range fresh {
		joined[name] = a
		r.looked[name] = looked
		// A time of before the clock was set back counts from now.
		if seen := r.sightings[name]; seen.state != a.State || seen.since.After(looked) {
			r.sightings[name] = sighting{state: a.State, since: looked}
		}
	}
	r.assessed = joined
	return joined
}

// sighting is a state as this process saw it, and since when.
type sighting struct {
	state compare.State
	since time.Time
}

// watchForGap restarts holdFor where nobody looked for two sweeps after the
// last look ended: a pause of the process must not count as health. A look that
// takes long is no gap.
func (r *Reconciler) watchForGap(ctx context.Context, services []spec.Service, now time.Time) {
	limit := 2*r.o.Config.Sweep.Interval + r.o.Config.Sweep.Interval/2
	var late []string
	r.mu.Lock()
	for _, svc := range services {
		if at := r.looked[svc.Name]; !at.IsZero() && now.Sub(at) > limit {
			late = append(late, svc.Name)
		}
	}
	all := len(late) == len(r.set.Services)
	r.mu.Unlock()
	if len(late) == 0 {
		return
	}
	r.tel.late()
	if r.o.Shared {
		return // others watched meanwhile
	}
	if all {
		late = []string{""}
	}
	for _, name := range late {
		if err := r.recordGap(ctx, name, "no look for more than two sweeps"); err != nil {
			r.log.Error("a gap could not be recorded", "service", name, "error", err)
		}
	}
}

// one makes one pass, isolated: a panic or an error of one service is its own
// result, and it is tried again later and later.
func (r *Reconciler) one(ctx context.Context, f *fleet, svc spec.Service, now time.Time) (res Result) {
	if r.stopping() || r.backingOff(svc.Name, now) {
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
	broken := r.book.broken()
	r.mu.Lock()
	// A ledger that cannot be used is no fault of the service, and every pass
	// must notice at once when it can be used again.
	if res.Err != nil && broken == nil {
		r.errors[res.Service]++
		res.RequeueAfter = min(interval<<min(r.errors[res.Service], 10), max(maxBackoff, interval))
		r.again[res.Service] = began.Add(res.RequeueAfter)
	} else {
		delete(r.errors, res.Service)
		delete(r.again, res.Service)
	}
	r.last[res.Service], r.passed = *res, r.o.Now()
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
	f := r.lookWith(ctx, set, set.Services, now, (*watch).all)
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

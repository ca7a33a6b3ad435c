package reconcile

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Run makes passes until ctx ends; then it takes no new work and returns when
// what was begun is said.
//
// Nothing slow holds up anything else: services that are measured by the same
// sources are looked at together, each pass runs by itself, and people are told
// beside them. A source, a model, an actuator or a pager that hangs delays what
// depends on it, and no page of another service.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it started, which is no fault
		}
		return err
	}
	r.running.Store(&ctx)
	stop := context.AfterFunc(ctx, func() { close(r.quit) })
	defer stop()
	// What is under way is finished although ctx ended: a measurement that was
	// cut short would read as unknown, and a send as in doubt.
	l := &loop{
		r: r, work: context.WithoutCancel(ctx), busy: map[string]bool{}, again: map[string]bool{}, asked: map[string]map[string]bool{},
		slots: make(chan struct{}, max(1, r.o.Config.Sweep.Concurrency)),
	}
	r.slots = l.slots
	l.begun.Go(func() { l.tell(ctx) })
	l.begun.Go(func() { l.audit(ctx) })
	l.begun.Go(func() { l.heed(ctx) })
	for due := time.Now(); ctx.Err() == nil; {
		r.guard("sweep", l.sweep)
		due = l.next(due)
		l.wait(ctx, due)
	}
	l.begun.Wait()
	r.told(l.work, true)
	r.deliveries.Wait()
	return nil
}

// loop is what runs at the same time.
type loop struct {
	r    *Reconciler
	work context.Context
	// begun is everything that Run waits for.
	begun sync.WaitGroup
	// slots bound the passes that compute at a time; one that waits for a
	// model or an actuator holds none.
	slots chan struct{}

	mu sync.Mutex
	// busy are the services, and the groups of sources, that are being worked
	// on; again are services that were asked for meanwhile.
	busy, again map[string]bool
	// asked are the services of each group that wait for an early look.
	asked map[string]map[string]bool
}

// sweep begins a look at each group of services that is not being looked at.
func (l *loop) sweep() {
	l.r.keep(l.work)
	set := l.r.Set()
	for _, g := range bySource(set.Services) {
		for _, services := range l.split(g.services) {
			l.begun.Go(func() {
				l.r.guard("source "+g.sources, func() { l.look(set, services) })
				l.looked(services)
			})
		}
		l.begin("shown "+g.sources, func() { l.r.show(l.work, g.services) })
	}
	l.begin("orphans", func() {
		// It gives its slot back while it waits, as a pass does.
		l.slots <- struct{}{}
		defer func() { <-l.slots }()
		l.r.orphans(l.work, l.r.seen(), l.r.o.Now())
	})
}

// split takes the services that nobody is looking at now, those without a long
// window that is due first: they do not wait for the others.
func (l *loop) split(services []spec.Service) [][]spec.Service {
	now, sweep := l.r.o.Now(), l.r.o.Config.Sweep.Interval
	var quick, slow []spec.Service
	late := false
	l.mu.Lock()
	for _, svc := range services {
		name := "look " + svc.Name
		switch {
		case l.busy[name]:
			late = true
			continue
		case l.r.watch.slow(svc.Name, now, sweep):
			slow = append(slow, svc)
		default:
			quick = append(quick, svc)
		}
		l.busy[name] = true
	}
	l.mu.Unlock()
	if late {
		l.r.tel.late()
	}
	return slices.DeleteFunc([][]spec.Service{quick, slow}, func(s []spec.Service) bool { return len(s) == 0 })
}

// look measures services together and begins their passes.
func (l *loop) look(set spec.Set, services []spec.Service) {
	now := l.r.o.Now()
	f := l.r.look(l.work, set, services, now)
	for _, svc := range services {
		l.pass(svc, f, now)
	}
	l.r.tellSoon()
}

func (l *loop) looked(services []spec.Service) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, svc := range services {
		delete(l.busy, "look "+svc.Name)
	}
}

// begin runs f by itself unless the last one of that name still runs.
func (l *loop) begin(name string, f func()) {
	l.mu.Lock()
	running := l.busy[name]
	l.busy[name] = true
	l.mu.Unlock()
	if running {
		return
	}
	l.begun.Go(func() {
		l.r.guard(name, f)
		l.mu.Lock()
		l.busy[name] = false
		l.mu.Unlock()
	})
}

// pass begins one pass of a service, unless one runs: a service is never worked
// on twice at a time, and the next sweep comes.
func (l *loop) pass(svc spec.Service, f *fleet, now time.Time) (begun bool) {
	name := "service " + svc.Name
	l.mu.Lock()
	running := l.busy[name]
	l.busy[name] = true
	l.mu.Unlock()
	if running {
		return false
	}
	l.begun.Go(func() {
		l.slots <- struct{}{}
		l.r.guard("the pass of "+svc.Name, func() { l.r.one(l.work, f, svc, now) })
		<-l.slots
		l.mu.Lock()
		l.busy[name] = false
		again := l.again[svc.Name]
		delete(l.again, svc.Name)
		l.mu.Unlock()
		l.r.tellSoon()
		if again {
			l.early(svc.Name)
		}
	})
	return true
}

// stopping reports whether Run is to end: no new work is taken, nothing is asked
// and nothing claimed. It holds from the very moment at which it was said.
func (r *Reconciler) stopping() bool {
	ctx := r.running.Load()
	return ctx != nil && (*ctx).Err() != nil
}

// tell keeps people's view in line, every interval and whenever there is news.
func (l *loop) tell(ctx context.Context) {
	for {
		timer := time.NewTimer(l.r.o.Config.Sweep.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-l.r.soon:
			timer.Stop()
		}
		l.r.told(l.work, false)
	}
}

// audit verifies the older part of the ledger; one that cannot be read just now is
// tried again, because nothing is claimed before it was verified.
func (l *loop) audit(ctx context.Context) {
	for !l.r.book.audited() {
		l.r.guard("audit", func() { l.r.audit(ctx) })
		timer := time.NewTimer(l.r.o.Config.Sweep.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// heed reads what another process appended, at once: a person's answer there
// should not wait for the next sweep. A hint that is lost costs that wait.
func (l *loop) heed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.r.o.Hints:
			services, err := l.r.book.news(l.work)
			if err != nil {
				l.r.log.Error("the ledger cannot be read; observing only", "error", err)
			}
			for _, service := range services {
				l.r.nudge(service)
			}
		}
	}
}

// tellSoon asks for people to be told now, and not only with the next sweep.
func (r *Reconciler) tellSoon() {
	select {
	case r.soon <- struct{}{}:
	default:
	}
}

// next is when the next sweep is due: an interval after the last was, whatever
// that took, so that sweeps do not drift. Those that are missed are counted.
func (l *loop) next(due time.Time) time.Time {
	interval := l.r.o.Config.Sweep.Interval
	for due = due.Add(interval); time.Until(due) <= 0; due = due.Add(interval) {
		l.r.tel.late()
	}
	return due
}

// wait makes early passes until the next sweep is due or ctx ends.
func (l *loop) wait(ctx context.Context, due time.Time) {
	timer := time.NewTimer(time.Until(due) + l.r.jitter())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case service := <-l.r.wake:
			l.early(service)
		}
	}
}

// group is services that are measured by the same sources.
type group struct {
	sources  string
	services []spec.Service
}

// bySource groups the services by the sources that they need.
func bySource(services []spec.Service) []group {
	groups := map[string][]spec.Service{}
	for _, svc := range services {
		var names []string
		for _, o := range svc.Objectives {
			for _, in := range o.Vantages() {
				for _, q := range in.Queries() {
					names = append(names, q.Source)
				}
			}
		}
		slices.Sort(names)
		key := strings.Join(slices.Compact(names), ",")
		groups[key] = append(groups[key], svc)
	}
	var out []group
	for _, key := range sortedKeys(groups) {
		out = append(out, group{key, groups[key]})
	}
	return out
}

// unslotted runs something slow without holding up the passes of others.
func (r *Reconciler) unslotted(f func()) {
	if r.slots != nil {
		<-r.slots
		defer func() { r.slots <- struct{}{} }()
	}
	f()
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

// Start records what a start changes: the documents, and that nobody watched.
// What cannot be recorded because of the ledger's own fault is left out: the
// agent then observes, and says so.
func (r *Reconciler) Start(ctx context.Context) error {
	if broken := r.o.LedgerFault; broken != nil {
		r.log.Error("observing only", "error", broken)
		return nil
	}
	if err := r.recordDocuments(ctx, r.Set()); err != nil {
		return err
	}
	if err := r.recordPolicies(ctx); err != nil {
		return err
	}
	if r.o.Shared {
		return nil // others watched
	}
	return r.recordGap(ctx, "", "start")
}

// recordGap says that nobody watched one service, or "" for all.
func (r *Reconciler) recordGap(ctx context.Context, service, why string) error {
	return r.book.one(ctx, func(*ledger.State) (ledger.Draft, error) {
		return ledger.Draft{Kind: ledger.KindGap, Service: service, Body: ledger.Gap{Why: why}}, nil
	})
}

// jitter spreads the sweeps of many agents over one interval.
func (r *Reconciler) jitter() time.Duration {
	s := r.o.Config.Sweep
	return time.Duration(float64(s.Interval) * s.Jitter * (2*rand.Float64() - 1))
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

package reconcile

import (
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// early looks at one service between sweeps, afresh. Those of a group of sources
// that are asked for while one look is under way are looked at together after
// it: an incident hints at a whole fleet at once, and a thousand looks of one
// service each would make a source answer for minutes, and every sweep wait
// behind them.
func (l *loop) early(service string) {
	svc, ok := l.r.Set().Service(service)
	if !ok || l.r.stopping() {
		return
	}
	sources := bySource([]spec.Service{svc})[0].sources
	l.mu.Lock()
	if l.asked[sources] == nil {
		l.asked[sources] = map[string]bool{}
	}
	l.asked[sources][service] = true
	name := "early " + sources
	running := l.busy[name]
	l.busy[name] = true
	l.mu.Unlock()
	if running {
		return
	}
	l.begun.Go(func() {
		done := l.r.guard(name, func() {
			for services := l.wanted(sources); len(services) > 0; services = l.wanted(sources) {
				l.lookEarly(services)
			}
		})
		if !done {
			l.mu.Lock()
			l.busy[name] = false
			l.mu.Unlock()
		}
	})
}

// wanted takes the services of a group that were asked for. None ends the early
// look, under the one lock under which it is begun: none that is asked for
// meanwhile waits for the next.
func (l *loop) wanted(sources string) []spec.Service {
	set := l.r.Set()
	var services []spec.Service
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range sortedKeys(l.asked[sources]) {
		svc, ok := set.Service(name)
		switch {
		case !ok || l.r.stopping():
		case l.busy["service "+name]:
			l.again[name] = true // it waits for a model, maybe: looked at when that is over
		default:
			services = append(services, svc)
		}
	}
	delete(l.asked, sources)
	l.busy["early "+sources] = len(services) > 0
	return services
}

func (l *loop) lookEarly(services []spec.Service) {
	if err := l.r.book.catchUp(l.work); err != nil {
		l.r.log.Error("the ledger cannot be read; observing only", "error", err)
	}
	now := l.r.o.Now()
	f := l.r.lookWith(l.work, l.r.Set(), services, now, (*watch).renew)
	f.early = true
	for _, svc := range services {
		if l.pass(svc, f, now) {
			continue
		}
		// The pass under way may have read the ledger before what asked for this.
		l.mu.Lock()
		l.again[svc.Name] = true
		l.mu.Unlock()
	}
	l.r.tellSoon()
}

package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// BenchmarkAllBreachedAtOnce is B17: a thousand services miss their SLO in the
// same sweep, with the storm brake off. A is a sweep then, B one over the same
// services while they are met; a real ledger on disk, a source that costs next to
// nothing, which makes the ratio the worst there is.
//
//	first    the sweep that finds the breach: a change of state, a question, its
//	         answer and a decision to be written down for each service
//	later    the median of those that follow in the same action window
//	window   the first sweep of the next action window
//	entries  what the first sweep appended, for each service
//	calls    of the proposer, 60 an hour being its limit
//	paged    services that people are told of once escalateWithin is over
//
// All of them should be at most 1.5, and against a source that costs nothing none
// is: first writes four thousand entries, later and window judge a thousand
// proposals anew and write the pages. Beside a real source, whose queries are most
// of a healthy sweep, they weigh less.
func BenchmarkAllBreachedAtOnce(b *testing.B) {
	const services = 1000
	o := breakAll(b, services, 60)
	healthy := middle(o.quiet)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(o.first)/float64(healthy), "first-ratio")
	b.ReportMetric(float64(middle(o.later))/float64(healthy), "later-ratio")
	b.ReportMetric(float64(o.next)/float64(healthy), "window-ratio")
	b.ReportMetric(float64(o.written)/services, "entries/service")
	b.ReportMetric(float64(healthy.Microseconds())/1000, "healthy-ms")
	b.ReportMetric(float64(o.calls), "calls")
	b.ReportMetric(float64(o.paged), "paged")
	b.ReportMetric(services, "N")
}

// The counts of B17: the proposer is not called beyond its limit, the rest is
// written down in the same sweep, and people are told of every service, whether
// it could be asked about or not.
func TestAllBreachedAtOnceAreAskedOrTold(t *testing.T) {
	const services, limit = 40, 7
	o := breakAll(t, services, limit)
	if o.calls != limit {
		t.Errorf("%d calls, the limit is %d", o.calls, limit)
	}
	if o.early != 0 {
		t.Errorf("people were told of %d services before escalateWithin", o.early)
	}
	if o.refused != services-limit {
		t.Errorf("%d services have a final decision after the first sweep without being asked about, want %d", o.refused, services-limit)
	}
	if o.paged != services {
		t.Errorf("people are told of %d of %d services after escalateWithin and two sweeps", o.paged, services)
	}
}

// outage is what happened when everything broke.
type outage struct {
	quiet, later                          []time.Duration
	first, next                           time.Duration
	written, refused, calls, early, paged int
}

// breakAll breaks all services in one sweep and goes on until people must know.
func breakAll(t testing.TB, services, limit int) outage {
	t.Helper()
	var o outage
	w := manyServices(t, services)
	red := &switched{}
	calls := &limited{w: w, limit: limit}
	w.options = func(o *reconcile.Options) { o.Measurer, o.Proposer = red, calls }
	w.cfg.Sweep.Concurrency = 256 // In Run a pass gives its slot back while it waits for the disk.
	w.start()
	for range 24 { // holdFor, so that the documents are proven
		o.quiet = append(o.quiet, w.timedSweep())
	}
	for w.window().End().Sub(w.clock()) < 6*time.Minute {
		w.timedSweep()
	}
	before := len(w.entries())
	red.set(true)
	broke := w.clock()
	window := w.window()
	o.first = w.timedSweep()
	o.written = len(w.entries()) - before
	w.r.View(func(s *ledger.State) {
		for _, svc := range w.set.Services {
			w := s.Services[svc.Name].Windows[window.String()]
			if w != nil && w.Final != "" && w.Proposed.Proposal.Kind == propose.KindMalformed {
				o.refused++
			}
		}
	})
	for w.window() == window {
		o.later = append(o.later, w.timedSweep())
	}
	o.next = w.timedSweep()
	within := w.set.Services[0].Remediation.EscalateWithin
	for w.clock().Sub(broke) < within {
		w.timedSweep()
	}
	for _, p := range w.pager.open() {
		if p.Now == escalate.CannotAct {
			o.early++
		}
	}
	for w.clock().Sub(broke) < within+2*step30 {
		w.timedSweep()
	}
	o.calls, o.paged = calls.made(), len(w.pager.open())
	return o
}

func (w *world) timedSweep() time.Duration {
	w.t.Helper()
	began := time.Now()
	for _, res := range w.r.Sweep(w.t.Context()) {
		if res.Err != nil {
			w.t.Fatal(res.Err)
		}
	}
	took := time.Since(began)
	w.pass(step30)
	return took
}

func middle(ds []time.Duration) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[len(ds)/2]
}

// BenchmarkLongPast says what ten thousand closed episodes in the ledger add to a
// sweep over healthy services: A is with them, B without. "state-growth" is the
// size of the folded ledger after all of them, held against that after half of
// them: what it holds is bounded.
func BenchmarkLongPast(b *testing.B) {
	const services, episodes = 100, 10_000
	w := manyServices(b, services)
	red := &switched{}
	w.options = func(o *reconcile.Options) { o.Measurer = red }
	w.propose = func(propose.Request) propose.Proposal {
		return propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}}
	}
	for i := range w.set.Services {
		w.set.Services[i].Remediation.HoldFor = step30
	}
	w.start()
	quiet := func() time.Duration {
		var ds []time.Duration
		for range 60 {
			ds = append(ds, w.timedSweep())
		}
		return middle(ds)
	}
	without, half := quiet(), 0
	for i := range episodes / services {
		if i == episodes/services/2 {
			half = w.stateSize()
		}
		red.set(true)
		w.timedSweep()
		red.set(false)
		for range 4 {
			w.timedSweep()
		}
		w.pass(10 * time.Minute) // a window of its own
	}
	if n := w.kinds()[ledger.KindRecovered]; n < episodes {
		b.Fatalf("%d episodes were closed, want %d", n, episodes)
	}
	whole := w.stateSize()
	with := quiet()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(with)/float64(without), "ratio")
	b.ReportMetric(float64(without.Microseconds())/1000, "B-ms")
	b.ReportMetric(float64(whole)/float64(half), "state-growth")
	b.ReportMetric(float64(whole), "state-entries")
	b.ReportMetric(float64(len(w.entries())), "entries")
	b.ReportMetric(episodes, "N")
}

// stateSize is how many things the fold of the ledger holds.
func (w *world) stateSize() (n int) {
	w.r.View(func(s *ledger.State) {
		n = len(s.Effects) + len(s.Decisions) + len(s.Tickets) + len(s.Pages) + len(s.Charged) + len(s.Starts) + len(s.Services)
		for _, sv := range s.Services {
			n += len(sv.Windows) + len(sv.Effects) + len(sv.Tickets)
		}
	})
	return n
}

// manyServices is a world of equal ones, each with a target of its own.
func manyServices(t testing.TB, n int) *world {
	t.Helper()
	w := prepare(t)
	w.cfg.Sweep = config.Sweep{Interval: step30, Concurrency: 8}
	w.cfg.Limits.StormMin, w.cfg.Limits.StormFraction = 10*n, 1
	one := w.set.Services[0]
	w.set.Services = nil
	for i := range n {
		svc := one
		svc.Name = fmt.Sprintf("s%04d", i)
		svc.Remediation.Service, svc.Digest = svc.Name, "doc-"+svc.Name
		svc.Remediation.Actions = slices.Clone(one.Remediation.Actions)
		a := &svc.Remediation.Actions[0]
		a.Target.URL += "/" + svc.Name
		a.Target.StatusURL = a.Target.URL
		w.set.Services = append(w.set.Services, svc)
	}
	return w
}

// switched is a source that shows all services met, or all of them breached.
type switched struct {
	mu  sync.Mutex
	red bool
}

func (s *switched) set(red bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.red = red
}

func (s *switched) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	s.mu.Lock()
	defer s.mu.Unlock()
	ratio := 0.0
	if s.red {
		ratio = 0.3
	}
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		out[i] = measure.Measurement{
			ID: q.ID, Source: "main", HasEvents: true, Total: 1e6, Good: 1e6 * (1 - ratio), ErrorRatio: ratio, SampleAt: q.ID.At,
		}
	}
	return out
}

func (s *switched) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{"main": 0}
}

// limited is a proposer that answers at once, and only so often.
type limited struct {
	w     *world
	limit int
	mu    sync.Mutex
	n     int
}

func (l *limited) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

func (l *limited) made() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

func (l *limited) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= l.limit {
		return reconcile.Proposed{Proposal: propose.Malformed(l.Identity(), "limit", "callsPerHour")}
	}
	l.n++
	p := l.w.propose(r)
	p.Proposer = l.Identity()
	return reconcile.Proposed{Proposal: p}
}

package incident

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// actuators are one for each path that the documents send to, with journals of
// their own.
type actuators struct {
	at map[string]*executetest.Actuator

	now     func() time.Time
	traffic *traffic
	timers  *timers
}

func newActuators(in Incident, paths []string, w *world) (*actuators, error) {
	as := &actuators{at: map[string]*executetest.Actuator{}, now: w.now, traffic: w.traffic, timers: &w.timers}
	treated := map[string]Target{}
	for _, t := range in.Targets {
		treated[t.Path] = t
	}
	for _, path := range paths {
		t := treated[path]
		a, err := executetest.NewActuator(executetest.ActuatorOptions{
			Dedup: true, State: maps.Clone(t.State), Now: w.now, After: w.timers.after(w.now),
			OnApply: func(e execute.Envelope) { as.applied(path, e) },
		})
		if err != nil {
			return nil, fmt.Errorf("the actuator of %s: %w", path, err)
		}
		as.at[path] = a
		as.treat(a, t, w.began)
	}
	return as, nil
}

func (as *actuators) treat(a *executetest.Actuator, t Target, began time.Time) {
	how := executetest.Treatment{Mode: t.Mode, Delay: t.Delay}
	switch {
	case t.Mode == "":
	case t.Next > 0:
		a.TreatNext(t.Next, how)
	default:
		a.Treat(how)
	}
	for _, f := range t.Foreign {
		as.timers.add(began.Add(f.At), func() { write(a, f.Set) })
	}
}

// applied is called while the actuator is locked, so what somebody writes to it
// comes with the next instant.
func (as *actuators) applied(path string, e execute.Envelope) {
	for _, set := range as.traffic.applied(e, as.now()) {
		as.timers.add(as.now(), func() { write(as.at[path], set) })
	}
}

func write(a *executetest.Actuator, set map[string]any) {
	for name, v := range set {
		if list, ok := v.([]any); ok {
			v = slices.Clone(list)
		}
		a.SetState(name, v)
	}
}

// ServeHTTP is all of them.
func (as *actuators) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := as.at[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	a.ServeHTTP(w, r)
}

// journal is what all of them wrote down, in the order of time.
func (as *actuators) journal() []executetest.Record {
	var out []executetest.Record
	for _, path := range slices.Sorted(maps.Keys(as.at)) {
		out = append(out, as.at[path].Journal()...)
	}
	slices.SortStableFunc(out, func(a, b executetest.Record) int { return a.Time.Compare(b.Time) })
	return out
}

// timers are what is due at times of the simulation.
type timers struct {
	mu  sync.Mutex
	all []timer
}

type timer struct {
	at time.Time
	f  func()
}

func (t *timers) add(at time.Time, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, timer{at, f})
}

func (t *timers) after(now func() time.Time) func(time.Duration, func()) {
	return func(d time.Duration, f func()) { t.add(now().Add(d), f) }
}

// next is when the first is due; zero without any.
func (t *timers) next() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, x := range t.all {
		if first.IsZero() || x.at.Before(first) {
			first = x.at
		}
	}
	return first
}

// run runs what is due, in the order in which it is, and what that leads to.
func (t *timers) run(now time.Time) {
	for {
		t.mu.Lock()
		first := -1
		for i, x := range t.all {
			if !x.at.After(now) && (first < 0 || x.at.Before(t.all[first].at)) {
				first = i
			}
		}
		if first < 0 {
			t.mu.Unlock()
			return
		}
		f := t.all[first].f
		t.all = slices.Delete(t.all, first, first+1)
		t.mu.Unlock()
		f()
	}
}

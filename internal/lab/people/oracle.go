package people

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// oracle says who has to know what by when. It looks at the numbers that are fed
// in, at the journal of the actuators and at which receiver was up when, and at
// the screens; never at the ledger.
type oracle struct {
	g *game
	// missed and dark are since when a service was missed, or unknown, without a
	// break.
	missed, dark map[string]time.Time
	// judged are the misses that were counted as due, by service.
	judged     map[string]time.Time
	due        int
	violations []string
}

func newOracle(g *game) *oracle {
	return &oracle{g: g, missed: map[string]time.Time{}, dark: map[string]time.Time{}, judged: map[string]time.Time{}}
}

// The times that the promise adds up.
const (
	// seen: a sweep to measure it, and a sweep to tell of it.
	seen = 2 * sweep
	// delivered is a slow delivery and the distance between two looks.
	delivered = look + 5*time.Second
	// passedOn is how long it takes to give up one receiver: three attempts with
	// their backoff, each up to a sweep late, which hang.
	passedOn = 3 * time.Minute
	// retried is the longest backoff, and a sweep.
	retried = 5*time.Minute + sweep
	// takenOver is how long another replica waits for what a dead one began.
	takenOver = 2 * time.Minute
	// acting is how long one action may take until it is judged.
	acting = timeout + maxLateness + settle + judgeWindow
)

// look judges one instant.
func (o *oracle) look(now time.Time) {
	for _, s := range o.g.world.plan.Services {
		o.follow(s, now)
		if s.Mode == spec.Observe {
			o.left(s)
			continue
		}
		if since, ok := o.missed[s.Name]; ok {
			o.demand(s, "missed", since, o.after(s, since, now), now)
		}
		if since, ok := o.dark[s.Name]; ok {
			o.demand(s, "unknown", since, since.Add(unknownFor), now)
		}
	}
}

// follow keeps since when a service is missed, or unknown.
func (o *oracle) follow(s Service, now time.Time) {
	w := o.g.world
	unknown := w.has(NoSource, "", now) || w.has(Dark, s.Name, now)
	keep(o.dark, s.Name, unknown, now)
	short, long := w.bad(s.Name, now.Add(-judgeWindow), now), w.bad(s.Name, now.Add(-longWindow), now)
	const burning = factor * (1 - target)
	keep(o.missed, s.Name, !unknown && short > burning && long > burning, now)
}

func keep(since map[string]time.Time, name string, is bool, now time.Time) {
	if _, was := since[name]; is && !was {
		since[name] = now
	} else if !is {
		delete(since, name)
	}
}

// after is when people have to be told of a miss: after escalateWithin, unless
// something was sent that may still help.
func (o *oracle) after(s Service, since, now time.Time) time.Time {
	w := o.g.world
	due := since.Add(escalateWithin)
	if s.Doubtful {
		return due // nobody waits for the outcome of what may not have happened
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.sent[s.Name] {
		over := at.Add(acting + seen)
		if o.darkened(s, at, now) {
			over = over.Add(unknownFor)
		}
		due = latest(due, over)
	}
	return due
}

func (o *oracle) darkened(s Service, from, to time.Time) bool {
	for _, x := range o.g.world.plan.Windows {
		dark := x.Fault == NoSource || x.Fault == Dark && x.Of == s.Name
		if dark && o.g.world.began.Add(x.From).Before(to) && o.g.world.began.Add(x.To).After(from) {
			return true
		}
	}
	return false
}

// demand wants a page on somebody's screen once it is due and a receiver was up
// for long enough.
func (o *oracle) demand(s Service, what string, since, due, now time.Time) {
	due = o.served(due.Add(seen), now)
	if due.IsZero() || now.Before(due) {
		return
	}
	page, by, shown := o.shown(s.Name)
	if !o.reachable(since, due, now) {
		o.g.world.cover("nobody could be reached")
		return
	}
	key := what + " " + s.Name
	if o.judged[key].Equal(since) {
		if !shown {
			o.fail(s, what, since, due, now)
		}
		return
	}
	o.judged[key] = since
	o.due++
	o.meet(s, what, due, page, by)
	if !shown {
		o.fail(s, what, since, due, now)
	}
}

// served moves what is due behind the time in which no process was there to
// serve it; zero while there is none. A ledger that is back gives an episode its
// id, under which receivers are told once more, one after the other.
func (o *oracle) served(due, now time.Time) time.Time {
	w := o.g.world
	for _, x := range w.plan.Windows {
		end := w.began.Add(x.To)
		if (x.Fault == ReadOnly || x.Fault == Unreadable) && !end.After(now) {
			due = latest(due, end.Add(seen))
		}
	}
	died := w.began.Add(w.plan.Dies)
	if w.plan.Dies == 0 || now.Before(died) {
		return due
	}
	if w.plan.Replicas > 1 {
		return latest(due, died.Add(takenOver))
	}
	again := died.Add(w.plan.Gone)
	if w.plan.Gone == 0 || now.Before(again) {
		return time.Time{}
	}
	return latest(due, again.Add(seen+takenOver))
}

// reachable reports whether some receiver was up for so long that it must have
// been told by now: those before it are given up one after the other, and one that
// was down itself is tried again later and later.
func (o *oracle) reachable(since, due, now time.Time) bool {
	w := o.g.world
	for i, name := range w.plan.Receivers {
		if w.hindered(name, now) {
			continue
		}
		back, patience := o.back(name, now), delivered
		if back.After(since) {
			patience += retried
		}
		known := latest(due, back).Add(patience + time.Duration(i)*passedOn)
		if !now.Before(known) {
			return true
		}
	}
	return false
}

// back is when a receiver was last hindered; the begin when it never was.
func (o *oracle) back(receiver string, now time.Time) time.Time {
	w := o.g.world
	back := w.began
	for _, x := range w.plan.Windows {
		if end := w.began.Add(x.To); slices.Contains(hinders, x.Fault) && x.Of == receiver && !end.After(now) {
			back = latest(back, end)
		}
	}
	return back
}

// shown is an open page on somebody's screen that tells of a service.
func (o *oracle) shown(service string) (page escalate.Page, by string, ok bool) {
	for _, name := range o.g.world.plan.Receivers {
		for _, p := range o.g.screens[name].pages() {
			if o.tells(p, service) {
				return p, name, true
			}
		}
	}
	return escalate.Page{}, "", false
}

// tells: its own page, that of a storm, one of the source, or that of a service
// that it depends on and that names it.
func (o *oracle) tells(p escalate.Page, service string) bool {
	switch {
	case p.Service == service, p.ID == "storm":
		return true
	case p.ID == "source/"+source, p.Service != "" && o.dependsOn(service, p.Service):
		return strings.Contains(p.Text+p.Summary, service)
	}
	return false
}

func (o *oracle) dependsOn(service, on string) bool {
	for _, name := range o.g.world.service(service).DependsOn {
		if name == on || o.dependsOn(name, on) {
			return true
		}
	}
	return false
}

// left: nobody is told of a service in observe, who asked to be left alone.
func (o *oracle) left(s Service) {
	for name, screen := range o.g.screens {
		for _, p := range screen.pages() {
			if p.Service == s.Name {
				o.violations = append(o.violations, fmt.Sprintf("%s is in observe, and %s shows %q", s.Name, name, p.Summary))
			}
		}
	}
	if _, missed := o.missed[s.Name]; missed {
		o.g.world.cover("missed in observe")
	}
}

func (o *oracle) fail(s Service, what string, since, due, now time.Time) {
	began := o.g.world.began
	o.violations = append(o.violations, fmt.Sprintf("%s is %s since %s, which was due by %s, and at %s no screen shows it",
		s.Name, what, since.Sub(began), due.Sub(began), now.Sub(began)))
}

// meet counts what was in the way when a page was due.
func (o *oracle) meet(s Service, what string, due time.Time, p escalate.Page, by string) {
	w := o.g.world
	w.cover("due: " + what)
	for _, f := range []Fault{BoardDown, BoardLost, BoardLimited, BoardHangs, BoardDeleted, ReadOnly, Unreadable, Frozen, NoPolicy, Mute, NoIdea, NoSource} {
		if w.has(f, "", due) {
			w.cover("due: " + string(f))
		}
	}
	for _, f := range hinders {
		if w.has(f, w.plan.Receivers[0], due) {
			w.cover("due: first " + string(f))
		}
	}
	if by != "" && by != w.plan.Receivers[0] {
		w.cover("told by a further receiver")
	}
	if w.plan.Dies > 0 && due.After(w.began.Add(w.plan.Dies)) {
		w.cover(fmt.Sprintf("due: one of %d died", w.plan.Replicas))
	}
	w.cover(tale(s, p))
}

// tale is how somebody was told of a service.
func tale(s Service, p escalate.Page) string {
	switch {
	case p.ID == "storm":
		return "told by the storm's page"
	case p.ID == "source/"+source:
		return "told by the source's page"
	case p.Service != s.Name && p.Service != "":
		return "told by the page of a dependency"
	case p.Service != "":
		return "told because: " + p.Now
	}
	return "told by nobody"
}

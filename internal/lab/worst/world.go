package worst

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const (
	source = "main"
	oncall = "oncall"
)

// together is how many services are broken at a time: fewer than the storm brake
// looks at, whatever the adversary breaks besides.
const together = 2

// A service is broken for a while in each cycle, and the rest of it well, so that
// its episodes end and nothing that holds for an episode holds for ever.
const (
	slot   = 5 * time.Hour
	broken = 3 * time.Hour
)

// world is the services as they really are, the actuator and the adversary. It
// is everything around the loop.
type world struct {
	setup     Setup
	adversary Adversary
	start     time.Time

	mu      sync.Mutex
	now     time.Time
	courses map[string]*course
	plan    []step
	// turn is how many effects there were that are no undo, done by service/action.
	turn    int
	done    map[string]int
	state   map[string]int64
	keys    map[gate.Key]bool
	effects []effect
}

// effect is one that was carried out, as the actuator knows it.
type effect struct {
	service, action string
	at              time.Time
	undo            bool
	kind            harm
	harmful         bool
	judged          bool
}

func newWorld(s Setup, a Adversary, start time.Time) *world {
	w := &world{
		setup: s, adversary: a, start: start, now: start, courses: map[string]*course{},
		done: map[string]int{}, state: map[string]int64{}, keys: map[gate.Key]bool{},
	}
	if a.spends > 0 {
		w.plan = s.plan(min(a.spends, s.Services))
	}
	for n := range s.Services {
		w.courses[serviceName(n)], w.courses[clientName(n)] = &course{}, &course{}
	}
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// pass lets one sweep interval go by, and breaks and heals what is due.
func (w *world) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(sweep)
	groups := (w.setup.Services + together - 1) / together
	at := w.now.Sub(w.start) - 2*time.Hour // quiet first, so that documents settle
	for n := range w.setup.Services {
		c := w.courses[serviceName(n)]
		phase := (at - time.Duration(n/together)*slot) % (time.Duration(max(2, groups)) * slot)
		switch {
		case at < 0:
		case phase == 0:
			c.set(w.now, 0.8)
		case phase == judge:
			c.set(w.now, 0.3)
		case phase == broken:
			c.set(w.now, healthy)
			w.courses[clientName(n)].set(w.now, healthy)
		}
	}
	w.look()
}

// look finds out what became of effects whose judge window has passed.
func (w *world) look() {
	for i := range w.effects {
		e := &w.effects[i]
		if e.judged || w.now.Before(e.at.Add(settle+judge)) {
			continue
		}
		e.judged = true
		e.harmful = w.courses[e.service].harmed(e.at) || w.courses[e.service+"-client"].broken(e.at)
	}
	if len(w.effects) == 0 || w.effects[len(w.effects)-1].judged {
		for _, c := range w.courses {
			c.forget(w.now.Add(-2 * day))
		}
	}
}

// Measure answers from the truth, with ten events a second.
func (w *world) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		m := measure.Measurement{ID: q.ID, Source: source, HasEvents: true}
		ratio, known := w.courses[q.ID.Service].measured(span{q.ID.At.Add(-q.ID.Window), q.ID.At})
		if known {
			m.Total, m.ErrorRatio = 10*q.ID.Window.Seconds(), ratio
			m.Good, m.SampleAt = m.Total*(1-ratio), q.ID.At.Add(-5*time.Second)
		} else {
			m.Reason = measure.NoData
		}
		out[i] = m
	}
	return out
}

// Clocks agree.
func (w *world) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{source: 0}
}

// Identity is that of rules: no model is asked.
func (w *world) Identity() propose.Proposer { return propose.Proposer{Kind: "rules"} }

// Propose gives an action whose next harm fits the moment, another one first in
// each window: what is by approval only must not keep the other from its turn.
func (w *world) Propose(_ context.Context, r propose.Request) reconcile.Proposed {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := propose.Proposal{Kind: propose.KindNone, Parameters: propose.Parameters{}, Proposer: w.Identity()}
	c := w.courses[r.Service.Name]
	recovering, steady := c.recovering(w.now), c.steady(w.now)
	actions := r.Service.Remediation.Actions
	first := int(w.now.Sub(w.start) / actionWindow)
	for i := range actions {
		a := actions[(first+i)%len(actions)]
		name := r.Service.Name + "/" + a.Name
		kind := w.next(r.Service.Name, a.Name)
		if kind == "" || kind == late && !recovering || kind != late && !steady {
			continue
		}
		p.Kind, p.Action = propose.KindAction, a.Name
		if len(a.Parameters) > 0 {
			p.Parameters["level"] = w.state[name] + 1
		}
		break
	}
	return reconcile.Proposed{Proposal: p}
}

func (w *world) next(service, action string) harm {
	return w.adversary.next(w.plan, w.turn, service, action, w.done[service+"/"+action])
}

// Execute carries out what is permitted.
func (w *world) Execute(_ context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	if err := execute.LastLook(p, w.clock, ready); err != nil {
		return execute.Refused(w.clock(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[p.Key()] {
		return execute.Receipt{Effect: execute.NoOp, At: w.now, Detail: "409 done already"}, nil
	}
	w.keys[p.Key()] = true
	name := p.Service() + "/" + p.Action().Name
	if level, ok := p.Parameters()["level"]; ok {
		w.state[name] = number(level)
	}
	e := effect{service: p.Service(), action: p.Action().Name, at: w.now, undo: p.Undo()}
	if e.undo {
		e.kind = w.undo(p.Service())
	} else {
		e.kind = w.next(p.Service(), p.Action().Name)
		w.done[name]++
		w.turn++
		w.harm(p.Service(), e.kind)
	}
	w.effects = append(w.effects, e)
	if w.adversary.answer != answers {
		return execute.Receipt{Effect: execute.InDoubt, At: w.now, Detail: "the answer was lost"}, nil
	}
	return execute.Receipt{Effect: execute.Applied, At: w.now, AppliedAt: w.now, Detail: "200 applied"}, nil
}

// harm changes the truth as an effect of that kind does. A third more of the excess
// is more than the documents call worse; what was well is broken.
func (w *world) harm(service string, kind harm) {
	c := w.courses[service]
	now := c.at(w.now)
	worsen := func(ratio float64) float64 { return min(1, allowance+max(0.3, 1.3*(ratio-allowance))) }
	switch kind {
	case worse, late:
		c.set(w.now, worsen(now))
	case blind:
		c.set(w.now, worsen(now))
		w.blind(c)
	case helps:
		c.set(w.now, allowance+0.4*(now-allowance))
	case elsewhere:
		c.set(w.now, healthy)
		w.courses[service+"-client"].set(w.now, 0.5)
	case hidden:
		c.set(w.now, 1)
		c.set(w.now.Add(settle), now)
	}
}

func (w *world) blind(c *course) {
	c.blind = append(c.blind, span{w.now, w.now.Add(settle + judge + unknown + sweep)})
}

// undo is what putting back does: what it should, or more harm that nobody sees.
func (w *world) undo(service string) harm {
	c := w.courses[service]
	if w.adversary.undoHarms {
		w.harm(service, blind)
		return blind
	}
	c.set(w.now, 0.3)
	return helps
}

// Observe gives what the target reports.
func (w *world) Observe(_ context.Context, a spec.Action, key gate.Key) execute.Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.adversary.answer == neverAnswers && w.keys[key] {
		return execute.Observation{Detail: "no answer"}
	}
	service, _, _ := strings.Cut(string(key), ":")
	o := execute.Observation{Known: true, KeyKnown: w.keys[key]}
	if len(a.Parameters) > 0 {
		o.State = propose.Live{"level": w.state[service+"/"+a.Name]}
	}
	if o.KeyKnown {
		o.Result = execute.Applied
	}
	return o
}

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// pager takes every page.
type pager struct{}

// Name is the receiver's.
func (pager) Name() string { return oncall }

// Send takes the page; nobody answers.
func (pager) Send(context.Context, escalate.Page, string) (string, error) { return "", nil }

// thawed is a folder without freeze files.
type thawed struct{}

// Frozen returns none.
func (thawed) Frozen(string) ([]gate.Hold, error) { return nil, nil }

// Sending may begin.
func (thawed) Sending() (func(), error) { return func() {}, nil }

// List returns none.
func (thawed) List() ([]ledger.Freeze, error) { return nil, nil }

// Remove has nothing to do.
func (thawed) Remove(string) error { return nil }

// tally counts harmful effects by action and by service.
func (w *world) tally() (all, harmful int, actions, services map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	actions, services = map[string]int{}, map[string]int{}
	for _, e := range w.effects {
		all++
		if e.harmful {
			harmful++
			actions[e.service+"/"+e.action]++
			services[e.service]++
		}
	}
	return all, harmful, actions, services
}

func (e effect) String() string {
	return fmt.Sprintf("%s %s/%s %s undo=%t harmful=%t", e.at.Format("02 15:04"), e.service, e.action, e.kind, e.undo, e.harmful)
}

package people

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// Report is what a play came to.
type Report struct {
	Plan Plan
	// Violations are misses of which nobody was told in time, in words.
	Violations []string
	// Covered counts interesting states that were met.
	Covered map[string]int
	// Due are the misses that lasted long enough to be judged.
	Due int
}

// replica is one process.
type replica struct {
	name string
	loop *reconcile.Reconciler
	dead atomic.Bool
	stop context.CancelFunc
	done chan error
}

// Play plays one plan to its end.
func Play(ctx context.Context, p Plan, log *slog.Logger) (Report, error) {
	w := newWorld(p, time.Now())
	chain, err := month.NewChain("os:test", w.now)
	if err != nil {
		return Report{}, err
	}
	g := &game{world: w, chain: chain, screens: map[string]*screen{}, channel: &channel{w: w}, log: log}
	g.oracle = newOracle(g)
	for _, name := range p.Receivers {
		g.screens[name] = &screen{open: map[string]escalate.Page{}}
	}
	for i := range p.Replicas {
		if err := g.start(ctx, string(rune('a'+i))); err != nil {
			return Report{}, errors.Join(err, g.end())
		}
	}
	err = g.run(ctx)
	if err := errors.Join(err, g.end()); err != nil {
		return Report{}, err
	}
	g.tally()
	return Report{Plan: p, Violations: g.oracle.violations, Covered: w.covered, Due: g.oracle.due}, nil
}

// start runs one more process.
func (g *game) start(ctx context.Context, name string) error {
	r := &replica{name: name, done: make(chan error, 1)}
	o := g.options(name, r.dead.Load)
	var err error
	if r.loop, err = reconcile.New(ctx, o); err != nil {
		return err
	}
	ctx, r.stop = context.WithCancel(ctx)
	go func() { r.done <- r.loop.Run(ctx) }()
	g.replicas = append(g.replicas, r)
	return nil
}

// kill ends a process: from now on nothing of it has any effect.
func (r *replica) kill() {
	r.dead.Store(true)
	r.stop()
}

// end waits for every process, dead or alive.
func (g *game) end() error {
	var errs []error
	for _, r := range g.replicas {
		killed := r.dead.Load()
		r.kill()
		if err := <-r.done; err != nil && !killed {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// look is how often the world and its people move.
const look = 7 * time.Second

// run lets the time go by.
func (g *game) run(ctx context.Context) error {
	p := g.world.plan
	died, again := false, false
	for now := g.world.began; now.Sub(g.world.began) < length; now = time.Now() {
		since := now.Sub(g.world.began)
		if p.Dies > 0 && !died && since >= p.Dies {
			died = true
			g.replicas[0].kill()
		}
		if p.Gone > 0 && !again && since >= p.Dies+p.Gone {
			again = true
			if err := g.start(ctx, "a2"); err != nil {
				return err
			}
		}
		if g.world.has(BoardDeleted, "", now) {
			g.channel.tidy()
		}
		g.people(ctx)
		g.oracle.look(now)
		time.Sleep(look)
	}
	return nil
}

// alive is a process that runs; nil without one.
func (g *game) alive() *replica {
	for _, r := range g.replicas {
		if !r.dead.Load() {
			return r
		}
	}
	return nil
}

// people answer what they are shown, and acknowledge it.
func (g *game) people(ctx context.Context) {
	r := g.alive()
	if r == nil {
		return
	}
	if g.world.plan.Acks {
		g.acknowledge(ctx, r)
	}
	if !g.world.plan.Board {
		g.answerPages(ctx, r)
		return
	}
	for _, c := range g.channel.asked() {
		g.answer(ctx, r, approve.Answer{Ticket: c.Ticket, Digest: c.Digest, Via: "slack"}, c.Service)
	}
}

func (g *game) acknowledge(ctx context.Context, r *replica) {
	for id := range g.screens[g.world.plan.Receivers[0]].pages() {
		known := false
		r.loop.View(func(s *ledger.State) { p := s.Pages[id]; known = p != nil && p.AckedBy == "" && p.EndedAt.IsZero() })
		if known && r.loop.Ack(ctx, id, person, "slack") == nil {
			g.world.cover("a page was acknowledged")
		}
	}
}

// answerPages answers by command what a page asks for.
func (g *game) answerPages(ctx context.Context, r *replica) {
	for _, screen := range g.screens {
		for _, p := range screen.pages() {
			var t approve.Ticket
			r.loop.View(func(s *ledger.State) { t, _ = s.OpenTicket(p.Service) })
			if t.State == approve.Open && time.Since(t.Asked) > 40*time.Second {
				g.answer(ctx, r, approve.Answer{Ticket: t.ID, Via: "cli"}, t.Service)
			}
		}
	}
}

func (g *game) answer(ctx context.Context, r *replica, a approve.Answer, service string) {
	a.By = person
	switch g.world.service(service).Answer {
	case Ignores:
		return
	case Approves:
		a.Approve = true
	}
	if _, err := r.loop.Answer(ctx, a); err == nil {
		g.world.cover("a person answered")
	}
}

// tally counts what only the ledger tells; nothing is judged by it.
func (g *game) tally() {
	r := g.replicas[len(g.replicas)-1]
	r.loop.View(func(s *ledger.State) {
		for _, t := range s.Tickets {
			g.world.cover("ticket " + string(t.State))
		}
		if s.Storm.At != (time.Time{}) {
			g.world.cover("storm brake")
		}
		for _, d := range s.Decisions {
			for _, reason := range d.Decision.Reasons {
				g.world.cover("reason " + reason.Code)
			}
		}
		for _, name := range s.ServiceNames() {
			if sv, ok := s.Service(name); ok && sv.State == compare.Unknown {
				g.world.cover("unknown at the end")
			}
		}
	})
}

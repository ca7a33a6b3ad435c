package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// boundaries are the points between which a replica may lose touch.
var boundaries = []string{
	"before claim#1", "after claim#1", "before started#1", "after started#1", "connected#1", "look#1", "sent#1", "after receipt#1",
}

// fates are what happens to one of several replicas.
var fates = []string{"stopped", "killed", "cut off", "unheard"}

// replicaCases run two and three agents on one PostgreSQL ledger, and take one
// of them out at a boundary while the others know it as it was before.
func replicaCases(_ context.Context, p *planner) ([]Case, error) {
	pg, err := pgtest.Run(os.TempDir())
	if errors.Is(err, pgtest.ErrNoServer) {
		return skippedCase(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	p.OnClose(pg.Stop)
	cases := replicasOf(pg, 2, p.short)
	if !p.short {
		cases = append(cases, replicasOf(pg, 3, false)...)
	}
	return cases, nil
}

// replicasOf are the cases with n replicas.
func replicasOf(pg *pgtest.Server, n int, short bool) []Case {
	var cases []Case
	for _, fate := range fates {
		for _, point := range boundaries {
			if short && (point != "after started#1" || fate != "stopped" && fate != "killed") {
				continue
			}
			cases = append(cases, shared(pg, fmt.Sprintf("%d replicas, one %s at %s", n, fate, point),
				func(ctx context.Context, r *run) Result { return r.apart(ctx, pg, n, fate, point) }))
		}
	}
	rounds := 6
	if short {
		rounds = 1
	}
	for round := range rounds {
		cases = append(cases, shared(pg, fmt.Sprintf("%d replicas at once, round %d", n, round+1),
			func(ctx context.Context, r *run) Result { return r.together(ctx, pg, n) }))
	}
	return cases
}

// shared is a case on a shared ledger.
func shared(pg *pgtest.Server, name string, f func(ctx context.Context, r *run) Result) Case {
	return Case{Name: name, run: func(ctx context.Context, s *world.Slot) Result {
		w, err := s.NewShared(ctx, pg, episodes[0])
		if err != nil {
			return failed(fmt.Errorf("make a world: %w", err))
		}
		r := begin(w)
		r.result.Reached = true
		return f(ctx, r)
	}}
}

// replica is one agent with its own way to the ledger.
type replica struct {
	*world.World
	agent *world.Agent
	proxy *faultproxy.Proxy
}

// replicas makes n of them, none of which runs.
func (r *run) replicas(pg *pgtest.Server, n int) ([]*replica, error) {
	var out []*replica
	for i := range n {
		proxy, err := faultproxy.New(pg.Addr(), faultproxy.Options{})
		if err != nil {
			return out, err
		}
		w, err := r.Replica(string(rune('a'+i)), proxy.Addr())
		if err != nil {
			return out, errors.Join(err, proxy.Close())
		}
		out = append(out, &replica{World: w, proxy: proxy})
	}
	return out, nil
}

func (p *replica) start(rig world.Rig) (err error) {
	p.agent, err = p.Start(rig)
	return err
}

// end stops all replicas, and takes away their ways.
func (r *run) end(all []*replica) {
	for _, p := range all {
		if p.agent != nil {
			p.agent.Signal(syscall.SIGCONT)
			if err := p.agent.Stop(patience); err != nil {
				r.broke("replica: %v", err)
			}
		}
		if err := p.proxy.Close(); err != nil {
			r.broke("the way to the ledger: %v", err)
		}
	}
}

// together starts all replicas at the same moment on a broken service.
func (r *run) together(ctx context.Context, pg *pgtest.Server, n int) Result {
	all, err := r.replicas(pg, n)
	defer func() { r.end(all) }()
	if err != nil {
		return r.giveUp(err)
	}
	for _, p := range all {
		if err := p.start(world.Rig{}); err != nil {
			return r.giveUp(err)
		}
	}
	r.settledBy(ctx, all[0])
	r.end(all)
	all = nil
	return r.judge(ctx)
}

// settledBy waits until one replica sees the end of the episode.
func (r *run) settledBy(ctx context.Context, p *replica) {
	if err := p.Until(ctx, p.agent, patience, func() bool { return p.Settled(ctx) }); err != nil {
		r.broke("the episode never ended: %v", err)
	}
}

// apart: the others watch a good service and stand still while it breaks; one
// acts alone and meets its fate; the others wake with what they knew, and in
// the end the lost one comes back.
func (r *run) apart(ctx context.Context, pg *pgtest.Server, n int, fate, point string) Result {
	all, err := r.replicas(pg, n)
	defer func() { r.end(all) }()
	if err != nil {
		return r.giveUp(err)
	}
	lost, others := all[0], all[1:]
	r.Source.Reset(time.Time{})
	for _, p := range others {
		if err := p.start(world.Rig{}); err != nil {
			return r.giveUp(err)
		}
		if err := p.Until(ctx, p.agent, patience, func() bool { return p.Ready(ctx) }); err != nil {
			return r.giveUp(err)
		}
	}
	wait(ctx, 3*world.Sweep)
	for _, p := range others {
		p.agent.Signal(syscall.SIGSTOP)
	}
	r.breaks()
	if err := lost.meet(ctx, fate, point); err != nil {
		r.result.Reached = false
	}
	for _, p := range others {
		p.agent.Signal(syscall.SIGCONT)
	}
	wait(ctx, watched)
	if err := lost.comeBack(fate); err != nil {
		r.broke("%v", err)
	}
	if err := lost.Until(ctx, lost.agent, patience, func() bool { return lost.Ready(ctx) }); err != nil {
		r.broke("the lost replica did not come back: %v", err)
	}
	r.settledBy(ctx, others[0])
	r.end(all)
	all = nil
	return r.judge(ctx)
}

// meet runs a replica into its fate at a point; an error says that it did not
// come to it.
func (p *replica) meet(ctx context.Context, fate, point string) error {
	do := "stop"
	if fate == "killed" {
		do = "kill"
	}
	if err := p.start(world.Rig{At: point, Do: do}); err != nil {
		return err
	}
	err := p.Until(ctx, p.agent, 6*time.Second, func() bool { return p.agent.Ended() || p.agent.Stopped() })
	if err != nil && !p.agent.Ended() {
		return err
	}
	switch fate {
	case "cut off":
		// Nobody answers, and what stood is reset.
		if err := p.proxy.Set(faultproxy.Fault{Kind: faultproxy.Refuse}); err != nil {
			return err
		}
		p.proxy.Cut()
		p.agent.Signal(syscall.SIGCONT)
	case "unheard":
		// What is asked goes nowhere, and nobody says so.
		p.proxy.Hold(true)
		p.agent.Signal(syscall.SIGCONT)
	}
	return nil
}

// comeBack ends what happened to a replica.
func (p *replica) comeBack(fate string) error {
	switch fate {
	case "killed":
		return p.start(world.Rig{})
	case "cut off":
		return p.proxy.Set(faultproxy.Fault{Kind: faultproxy.Pass})
	case "unheard":
		p.proxy.Hold(false)
	}
	p.agent.Signal(syscall.SIGCONT)
	return nil
}

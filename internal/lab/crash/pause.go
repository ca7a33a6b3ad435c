package crash

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// asleep is longer than a permit lives.
const asleep = world.PermitTTL + 500*time.Millisecond

// unsent are the points of an episode before its first byte; whoever sleeps
// there must not send afterwards.
var unsent = []string{
	"before decision", "after decision", "before claim", "after claim", "before started", "after started", "send", "connected", "look",
}

func isUnsent(point string) bool {
	kind, _, _ := strings.Cut(point, "#")
	return slices.Contains(unsent, kind)
}

// pauseCases stop the process at each point from the decision to the receipt.
func pauseCases(ctx context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, o := range []world.Options{episodes[0], episodes[3], episodes[1]} {
		if p.short && o != episodes[0] {
			continue
		}
		points, err := p.dry(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, point := range points {
			kind, _, _ := strings.Cut(point, "#")
			if !isUnsent(point) && !slices.Contains([]string{"sent", "before receipt", "after receipt"}, kind) {
				continue
			}
			if p.short && !slices.Contains([]string{"after claim#1", "look#1"}, point) {
				continue
			}
			cases = append(cases, Case{Name: name(o) + "/sleep at " + point, run: func(ctx context.Context, s *world.Slot) Result {
				return paused(ctx, s, o, point)
			}})
		}
	}
	return cases, nil
}

// paused has an agent sleep at a point for longer than its permit lives.
func paused(ctx context.Context, s *world.Slot, o world.Options, point string) Result {
	w, err := s.New(ctx, o)
	if err != nil {
		return failed(err)
	}
	r := begin(w)
	answered, stop := context.WithCancel(ctx)
	defer stop()
	go w.Answer(answered)
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return failed(err)
	}
	if r.result.Reached = r.stopped(ctx, agent); r.result.Reached {
		wait(ctx, asleep)
	}
	woken := time.Now()
	agent.Signal(syscall.SIGCONT)
	r.settled(ctx, agent)
	result := r.judge(ctx)
	if r.result.Reached && isUnsent(point) {
		r.noneSentOf(ctx, woken)
	}
	result.Violations = r.result.Violations
	return result
}

// stopped waits for an agent to stand still, or for the end of the episode.
func (r *run) stopped(ctx context.Context, agent *world.Agent) bool {
	err := r.Until(ctx, agent, patience, func() bool { return agent.Stopped() || r.over(ctx) })
	if err != nil {
		r.broke("the agent did not come to the point: %v", err)
	}
	return agent.Stopped()
}

// noneSentOf: what was claimed before that instant was not sent.
func (r *run) noneSentOf(ctx context.Context, before time.Time) {
	for _, c := range r.claims(ctx) {
		if n := r.sent(string(c.Key)); c.at.Before(before) && n > 0 {
			r.broke("%s was claimed before the agent slept for %s, and was sent %d times after it woke", c.Key, asleep, n)
		}
	}
}

type claim struct {
	ledger.Claim
	at time.Time
}

// claims are those of the exported ledger.
func (r *run) claims(ctx context.Context) []claim {
	exported, err := r.Export(ctx)
	if err != nil {
		r.broke("%v", err)
		return nil
	}
	var out []claim
	for _, e := range exported.Entries {
		if e.Kind != ledger.KindClaim {
			continue
		}
		body, err := ledger.Decode(e)
		if err != nil {
			r.broke("%v", err)
			continue
		}
		out = append(out, claim{body.(ledger.Claim), e.Time})
	}
	return out
}

// wait sleeps, or ends with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

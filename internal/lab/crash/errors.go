package crash

import (
	"context"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// errorCases have each append fail, before and after it is on the disk. In the
// second case the agent knows less than the ledger.
func errorCases(ctx context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, o := range []world.Options{episodes[0], episodes[3]} {
		if p.short && o != episodes[0] {
			continue
		}
		points, err := p.dry(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, point := range points {
			writes := strings.HasPrefix(point, "before ") || strings.HasPrefix(point, "after ")
			if !writes || p.short && !slices.Contains([]string{"after claim#1", "after started#1", "before receipt#1"}, point) {
				continue
			}
			cases = append(cases, Case{Name: name(o) + "/error at " + point, run: func(ctx context.Context, s *world.Slot) Result {
				return erred(ctx, s, o, point)
			}})
		}
	}
	return cases, nil
}

// erred lets one append fail and the agent run on. One that cannot even record
// its start ends, and is started again.
func erred(ctx context.Context, s *world.Slot, o world.Options, point string) Result {
	w, err := s.New(ctx, o)
	if err != nil {
		return failed(err)
	}
	r := begin(w)
	answered, stop := context.WithCancel(ctx)
	defer stop()
	go w.Answer(answered)
	agent, err := r.Start(world.Rig{At: point, Do: "fail"})
	if err != nil {
		return failed(err)
	}
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() || r.over(ctx) })
	switch {
	case agent.Ended() && strings.Contains(point, " gap#") && agent.ExitCode() == 1:
		r.settle(ctx)
	case err != nil:
		r.broke("the agent did not get over one append that failed: %v", err)
		agent.Kill()
	default:
		if err := agent.Stop(patience); err != nil {
			r.broke("%v", err)
		}
	}
	r.result.Reached = r.passed(point)
	return r.judge(ctx)
}

// passed reports whether a point was come to.
func (r *run) passed(point string) bool {
	points, err := r.Points()
	if err != nil {
		r.broke("the points cannot be read: %v", err)
	}
	return slices.ContainsFunc(points, func(p world.Point) bool { return p.Point == point })
}

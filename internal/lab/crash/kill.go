package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// kinds of episodes: how the action is allowed, and how the actuator answers.
var episodes = []world.Options{
	{Class: "auto", Mode: executetest.ModeOK},
	{Class: "auto", Mode: executetest.ModeDropReply},
	{Class: "auto", Mode: executetest.ModeLateDropReply},
	{Class: "approval", Mode: executetest.ModeOK},
	{Class: "approval", Mode: executetest.ModeDropReply},
	{Class: "approval", Mode: executetest.ModeLateDropReply},
}

func name(o world.Options) string { return o.Class + "/" + string(o.Mode) }

// killCases counts the points of each kind of episode in a dry run, and kills
// at each of them.
func killCases(ctx context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, o := range episodes {
		if p.short && o != episodes[0] && o != episodes[1] {
			continue
		}
		points, err := p.dry(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("a dry run of %s: %w", name(o), err)
		}
		for _, point := range points {
			if p.short && !slices.Contains(shortPoints[o.Mode], point) {
				continue
			}
			cases = append(cases, killCase(o, point))
		}
	}
	return cases, nil
}

// shortPoints are the boundaries between which the promise is made.
var shortPoints = map[executetest.Mode][]string{
	executetest.ModeOK:        {"after claim#1", "before started#1", "look#1", "sent#1"},
	executetest.ModeDropReply: {"after started#1", "sent#1", "after receipt#1"},
}

// dry runs one whole episode and lists its points, each once and in order.
func (p *planner) dry(ctx context.Context, o world.Options) ([]string, error) {
	if points, ok := p.points[o]; ok {
		return points, nil
	}
	w, err := p.New(ctx, o)
	if err != nil {
		return nil, err
	}
	r := begin(w)
	answered, stop := context.WithCancel(ctx)
	defer stop()
	go w.Answer(answered)
	r.settle(ctx)
	if err := w.Close(); err != nil {
		return nil, err
	}
	if len(r.result.Violations) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(r.result.Violations, "; "))
	}
	passed, err := w.Points()
	if err != nil {
		return nil, err
	}
	points := make([]string, len(passed))
	for i, at := range passed {
		points[i] = at.Point
	}
	if !slices.Contains(points, "after receipt#1") {
		return nil, fmt.Errorf("nothing was sent in it, only %s", strings.Join(points, ", "))
	}
	p.points[o] = points
	return points, nil
}

func killCase(o world.Options, point string) Case {
	return Case{Name: name(o) + "/kill at " + point, run: func(ctx context.Context, s *world.Slot) Result {
		return killed(ctx, s, o, world.Rig{At: point, Do: "kill"})
	}}
}

// killed runs an agent into its end, and another one to the end of the
// episode.
func killed(ctx context.Context, s *world.Slot, o world.Options, rigs ...world.Rig) Result {
	w, err := s.New(ctx, o)
	if err != nil {
		return failed(err)
	}
	r := begin(w)
	answered, stop := context.WithCancel(ctx)
	defer stop()
	go w.Answer(answered)
	r.result.Reached = true
	for _, rig := range rigs {
		r.result.Reached = r.runInto(ctx, rig) && r.result.Reached
	}
	r.settle(ctx)
	return r.judge(ctx)
}

// runInto runs an agent until its rig has ended it, or the episode is over.
func (r *run) runInto(ctx context.Context, rig world.Rig) bool {
	agent, err := r.Start(rig)
	if err != nil {
		r.broke("%v", err)
		return false
	}
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() || r.over(ctx) })
	if err != nil && !agent.Ended() {
		r.broke("neither did it come to the point nor did the episode end: %v", err)
	}
	if agent.Ended() {
		if agent.ExitCode() >= 0 {
			r.broke("the agent ended by itself, with exit code %d", agent.ExitCode())
		}
		return true
	}
	agent.Kill()
	return false
}

// twiceCases kill an agent, and the next one while it clears up.
func twiceCases(_ context.Context, p *planner) ([]Case, error) {
	recoveries := []struct {
		mode  executetest.Mode
		first string
		then  []string
	}{
		{executetest.ModeOK, "after claim#1", []string{"before void#1", "after void#1", "before claim#1", "after claim#1", "after started#1", "sent#1"}},
		{executetest.ModeOK, "after started#1", []string{"before settled#1", "after settled#1", "after claim#1", "after started#1", "look#1"}},
		{executetest.ModeDropReply, "look#1", []string{"before settled#1", "after settled#1", "sent#1"}},
		{executetest.ModeDropReply, "sent#1", []string{"before gap#1", "after gap#1", "before settled#1", "after settled#1", "before outcome#1", "after outcome#1"}},
		{executetest.ModeLateDropReply, "sent#1", []string{"before settled#1", "after settled#1", "before outcome#1"}},
		{executetest.ModeDropReply, "after receipt#1", []string{"before settled#1", "after settled#1"}},
	}
	var cases []Case
	for _, rec := range recoveries {
		for _, then := range rec.then {
			if p.short && (rec.first != "sent#1" || then != "after settled#1") {
				continue
			}
			o := world.Options{Class: "auto", Mode: rec.mode}
			cases = append(cases, Case{
				Name: fmt.Sprintf("%s/kill at %s, then at %s", name(o), rec.first, then),
				run: func(ctx context.Context, s *world.Slot) Result {
					return killed(ctx, s, o, world.Rig{At: rec.first, Do: "kill"}, world.Rig{At: then, Do: "kill"})
				},
			})
		}
	}
	return cases, nil
}

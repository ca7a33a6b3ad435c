package crash

import (
	"context"
	"strings"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// secondCases start a second process on one SQLite file: another agent, and
// commands that write.
func secondCases(_ context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, point := range []string{"before claim#1", "after claim#1", "after started#1", "look#1", "sent#1"} {
		if p.short && point != "after started#1" {
			continue
		}
		cases = append(cases,
			scenario("a second agent while the first stands at "+point, episodes[0], func(ctx context.Context, r *run) Result {
				return r.second(ctx, point)
			}),
			scenario("commands that write while the agent stands at "+point, episodes[0], func(ctx context.Context, r *run) Result {
				return r.written(ctx, point)
			}))
	}
	return cases, nil
}

// second: the writer's lock is held by a process that stands still, so that
// another agent does not start.
func (r *run) second(ctx context.Context, point string) Result {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	r.refuses(ctx, "has a writer already")
	agent.Signal(syscall.SIGCONT)
	r.settled(ctx, agent)
	return r.judge(ctx)
}

// written: a command that would write to the ledger of a process that stands
// still does not, and says so.
func (r *run) written(ctx context.Context, point string) Result {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	out, code, err := r.Command(short, "budget", "reset", "--service", world.Service, "--action", world.Action, "--reason", "crash suite", "--until", "1h")
	cancel()
	if err == nil && code == 0 {
		r.broke("setpoint budget reset wrote beside a process that stands still: %s", out)
	}
	agent.Signal(syscall.SIGCONT)
	r.settled(ctx, agent)
	return r.judge(ctx)
}

// freezeCases freeze everything while the agent stands at a point, and while
// it runs.
func freezeCases(ctx context.Context, p *planner) ([]Case, error) {
	points, err := p.dry(ctx, episodes[0])
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, point := range points {
		// After the last look nothing is asked any more.
		if !isUnsent(point) || strings.HasPrefix(point, "look") || p.short && point != "connected#1" {
			continue
		}
		cases = append(cases, scenario("freeze while the agent stands at "+point, episodes[0], func(ctx context.Context, r *run) Result {
			return r.frozen(ctx, point)
		}))
	}
	return cases, nil
}

// frozen: the command is acknowledged while the agent hangs, and nothing is
// sent after that, through a restart too, until somebody thaws.
func (r *run) frozen(ctx context.Context, point string) Result {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	// Acknowledged is the exit; the file is there long before the agent answers.
	if out, code, err := r.Command(ctx, "freeze", "--reason", "crash suite"); err != nil || code != 0 {
		r.broke("setpoint freeze beside an agent that hangs: exit code %d, %v: %s", code, err, out)
	}
	agent.Signal(syscall.SIGCONT)
	r.quiet(ctx, world.Window, "after the freeze was acknowledged")
	agent.Kill()
	agent, err = r.Start(world.Rig{})
	if err != nil {
		return r.giveUp(err)
	}
	r.quiet(ctx, world.Window, "after a restart under a freeze")
	if out, code, err := r.Command(ctx, "thaw", "--all", "--reason", "crash suite"); err != nil || code != 0 {
		r.broke("setpoint thaw: exit code %d, %v: %s", code, err, out)
	}
	r.settled(ctx, agent)
	return r.judge(ctx)
}

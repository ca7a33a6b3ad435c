package crash

import (
	"context"
	"fmt"
	"path/filepath"
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

// freezeThere reports whether the file of a freeze is in its place.
func (r *run) freezeThere() bool {
	files, err := filepath.Glob(r.Path("setpoint.freeze/*.json"))
	return err == nil && len(files) > 0
}

// frozen: the command is acknowledged while the agent hangs, and nothing is
// sent after that, through a restart too, until somebody thaws.
func (r *run) frozen(ctx context.Context, point string) Result {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		return r.giveUp(err)
	}
	r.result.Reached = r.stopped(ctx, agent)
	before := len(r.Actuator.Journal())
	acknowledged := make(chan string, 1)
	go func() {
		out, code, err := r.Command(ctx, "freeze", "--reason", "crash suite")
		if err != nil || code != 0 {
			acknowledged <- fmt.Sprintf("setpoint freeze beside an agent that hangs: exit code %d, %v: %s", code, err, out)
			return
		}
		acknowledged <- ""
	}()
	// The file is what counts, and it is there long before a hung agent answers.
	// The agent goes on at once: later its permit would have expired, which stops
	// it whatever the freeze does.
	if err := r.Until(ctx, agent, patience, r.freezeThere); err != nil {
		r.broke("the freeze left no file: %v", err)
	}
	agent.Signal(syscall.SIGCONT)
	wait(ctx, world.Window)
	if n := len(r.Actuator.Journal()) - before; n > 0 {
		r.broke("%d requests after the file of the freeze was there", n)
	}
	if fault := <-acknowledged; fault != "" {
		r.broke("%s", fault)
	}
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

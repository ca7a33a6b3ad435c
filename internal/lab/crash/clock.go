package crash

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// steps are by how much the host's clock is set wrong: beyond the five seconds
// in which clocks may differ.
var steps = []time.Duration{24 * time.Hour, -10 * time.Minute, 6 * time.Second, -6 * time.Second}

// watched is how long an agent with a wrong clock is watched: longer than a
// window.
const watched = world.Window + 500*time.Millisecond

// clockCases turn the clock while the agent runs, at the boundaries of a send,
// and between two runs.
func clockCases(_ context.Context, p *planner) ([]Case, error) {
	var cases []Case
	add := func(name string, run func(ctx context.Context, r *run)) {
		cases = append(cases, Case{Name: name, run: func(ctx context.Context, s *world.Slot) Result {
			w, err := s.New(ctx, episodes[0])
			if err != nil {
				return failed(err)
			}
			r := begin(w)
			// Entries that were stamped by a fast clock stay ahead of the actuator's.
			r.skew = 7 * time.Second
			run(ctx, r)
			return r.judge(ctx)
		}})
	}
	for _, d := range steps {
		if p.short && d != 6*time.Second {
			continue
		}
		add(fmt.Sprintf("%+v from the start", d), func(ctx context.Context, r *run) { r.turnedStart(ctx, d) })
		if p.short {
			continue
		}
		add(fmt.Sprintf("%+v while the service is met", d), func(ctx context.Context, r *run) { r.turnedRunning(ctx, d) })
		add(fmt.Sprintf("%+v across a restart after an effect", d), func(ctx context.Context, r *run) { r.turnedRestart(ctx, d) })
		for _, point := range []string{"before claim#1", "after claim#1", "after started#1", "connected#1", "look#1"} {
			if point == "look#1" && d < 0 {
				continue // The last look is over, and the permit's time is not.
			}
			add(fmt.Sprintf("%+v at %s", d, point), func(ctx context.Context, r *run) { r.turnedAt(ctx, d, point) })
		}
	}
	add("-3s within the window of an effect", func(ctx context.Context, r *run) { r.turnedBack(ctx, -3*time.Second) })
	return cases, nil
}

// turn sets the clock wrong by d.
func (r *run) turn(d time.Duration) {
	if err := os.WriteFile(r.Path(world.ClockFile), []byte(d.String()), 0o600); err != nil {
		r.broke("the clock could not be set: %v", err)
	}
}

// quiet watches for requests that nobody wanted.
func (r *run) quiet(ctx context.Context, d time.Duration, why string) {
	before := len(r.Actuator.Journal())
	wait(ctx, d)
	if n := len(r.Actuator.Journal()) - before; n > 0 {
		r.broke("%d requests %s", n, why)
	}
}

// rightAgain ends an agent, sets the clock right and lets another one go on.
// Where the ledger lies in the future by then, that one holds until a named
// person says that the clock is right.
func (r *run) rightAgain(ctx context.Context, agent *world.Agent, d time.Duration) {
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
	r.turn(0)
	if d < time.Hour {
		r.settle(ctx)
		return
	}
	next, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	r.quiet(ctx, world.Window, "while the ledger lay in the future")
	r.told(ctx, next, "the ledger lay in the future and the service was broken", 0)
	if out, code, err := r.Command(ctx, "ledger", "lower-mark", "--reason", "the clock was a day ahead"); err != nil || code != 0 {
		r.broke("setpoint ledger lower-mark: exit code %d, %v: %s", code, err, out)
	}
	r.settled(ctx, next)
}

// turnedRunning turns the clock of an agent that watches a good service, which
// then breaks.
func (r *run) turnedRunning(ctx context.Context, d time.Duration) {
	r.Source.Reset(time.Time{})
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	if err := r.Until(ctx, agent, patience, func() bool { return r.Ready(ctx) }); err != nil {
		r.broke("%v", err)
	}
	wait(ctx, 3*world.Sweep)
	r.turn(d)
	wait(ctx, 3*world.Sweep)
	r.breaks()
	r.result.Reached = true
	r.quiet(ctx, watched, fmt.Sprintf("while the clock was %+v wrong", d))
	r.told(ctx, agent, "the clock was wrong and the service broken", d)
	r.rightAgain(ctx, agent, d)
}

// told waits for a page: a person must know when nothing can be done. A clock
// that is a few seconds behind makes what it measures begin later, and the page
// with it.
func (r *run) told(ctx context.Context, agent *world.Agent, why string, d time.Duration) {
	within := world.EscalateWithin + 3*time.Second
	if d < 0 && d > -10*time.Second {
		within -= d
	}
	err := r.Until(ctx, agent, within, func() bool { return len(r.Pager.Pages()) > 0 })
	if err != nil {
		r.broke("nobody was paged although %s: %v", why, err)
	}
}

// turnedStart is an agent whose clock is wrong from its start.
func (r *run) turnedStart(ctx context.Context, d time.Duration) {
	r.turn(d)
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	r.result.Reached = true
	r.quiet(ctx, watched, fmt.Sprintf("while the clock was %+v wrong", d))
	r.told(ctx, agent, "the clock was wrong and the service broken", d)
	r.rightAgain(ctx, agent, d)
}

// turnedRestart lets one agent act, and starts the next one with a wrong clock
// and the service broken again.
func (r *run) turnedRestart(ctx context.Context, d time.Duration) {
	r.episode(ctx)
	r.turnedStart(ctx, d)
}

// turnedAt turns the clock while the agent stands still at a point.
func (r *run) turnedAt(ctx context.Context, d time.Duration, point string) {
	agent, err := r.Start(world.Rig{At: point, Do: "stop"})
	if err != nil {
		r.broke("%v", err)
		return
	}
	r.result.Reached = r.stopped(ctx, agent)
	r.turn(d)
	agent.Signal(syscall.SIGCONT)
	r.quiet(ctx, watched, fmt.Sprintf("after the clock was turned by %+v at %s", d, point))
	r.rightAgain(ctx, agent, d)
}

// turnedBack lets an agent act and turns its clock back by less than clocks may
// differ: into a window that is over, or the one that was acted in.
func (r *run) turnedBack(ctx context.Context, d time.Duration) {
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	if err := r.Until(ctx, agent, patience, func() bool { return len(r.Actuator.Effects()) > 0 }); err != nil {
		r.broke("%v", err)
	}
	wait(ctx, world.Sweep) // the journal knows of an effect before it mends anything
	r.turn(d)
	r.breaks()
	r.result.Reached = true
	wait(ctx, watched)
	r.rightAgain(ctx, agent, d)
	var seen []string
	for _, rec := range slices.DeleteFunc(r.Actuator.Journal(), func(rec executetest.Record) bool { return !rec.Applied }) {
		if slices.Contains(seen, rec.Key) {
			r.broke("the window of %s was used twice", rec.Key)
		}
		seen = append(seen, rec.Key)
	}
}

package crash

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// failingCases have one sync of the ledger's files fail, and all writes from
// one on, as on a disk that turned read-only.
func failingCases(ctx context.Context, p *planner) ([]Case, error) {
	if why := noStrace(ctx); why != "" {
		return skippedCase(why), nil
	}
	counts, err := p.countSyscalls(ctx)
	if err != nil {
		return nil, err
	}
	var cases []Case
	add := func(name string, t trace) {
		t.files, t.log = storeFiles, os.DevNull
		cases = append(cases, scenario(name, episodes[0], func(ctx context.Context, r *run) Result { return r.failing(ctx, t) }))
	}
	for n := 1; n <= counts["fsync"]; n++ {
		if !p.short || n == 5 {
			add(fmt.Sprintf("fsync %d gives EIO", n), trace{syscall: "fsync", inject: fmt.Sprintf("error=EIO:when=%d", n)})
		}
	}
	for n := 1; n <= counts["pwrite64"]; n += 4 {
		if !p.short {
			add(fmt.Sprintf("pwrite64 gives EROFS from %d on", n), trace{syscall: "pwrite64", inject: fmt.Sprintf("error=EROFS:when=%d+", n)})
		}
	}
	for _, syscall := range []string{"pwrite64", "fsync"} {
		if p.short && syscall == "pwrite64" {
			continue
		}
		cases = append(cases, scenario(syscall+" of the seen file gives EIO", episodes[0], func(ctx context.Context, r *run) Result {
			return r.unseen(ctx, trace{[]string{".seen"}, os.DevNull, syscall, "error=EIO:when=1"})
		}))
	}
	return cases, nil
}

// failing runs an agent into the error. An append that met it is not believed,
// and neither is any later one: the process sends nothing more and a person is
// told; the next one goes on. What had been sent before is settled by it.
func (r *run) failing(ctx context.Context, t trace) Result {
	agent, err := r.Start(world.Rig{OneThread: true}, strace(r.World, t)...)
	if err != nil {
		return r.giveUp(err)
	}
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() || r.paged() || r.over(ctx) })
	switch {
	case agent.Ended():
		// It could not even record its start, or open the ledger.
		r.result.Reached = true
		r.said(string(r.Log()), []string{"ledger"})
		if agent.ExitCode() != 1 {
			r.broke("it ended with exit code %d, want 1", agent.ExitCode())
		}
	case err != nil:
		r.broke("nobody was told of a failing disk: %v", err)
	case r.paged():
		r.result.Reached = true
		r.quiet(ctx, world.Window, "although an append had failed")
	default:
		// The error came after the episode, or nothing was appended by it.
		r.result.Reached = len(r.Pager.Pages()) > 0
	}
	agent.Kill()
	r.afterFailure()
	r.settle(ctx)
	return r.judge(ctx)
}

// afterFailure: once an append was begun that never came back, nothing was
// appended and nothing sent.
func (r *run) afterFailure() {
	points, err := r.Points()
	if err != nil {
		r.broke("the points cannot be read: %v", err)
		return
	}
	for i, p := range points {
		kinds, begun := strings.CutPrefix(p.Point, "before ")
		if !begun || i+1 == len(points) || points[i+1].Point == "after "+kinds {
			continue
		}
		for _, later := range points[i+1:] {
			if !strings.HasPrefix(later.Point, "before ") && later.Point != "sent#1" {
				r.broke("the append at %q never came back, and later came %q", p.Point, later.Point)
				return
			}
		}
	}
}

// unseen lets the host not remember a start: nothing is sent for it. The next
// start writes the whole block anew, so that its sync says what it means, and
// the agent may go on.
func (r *run) unseen(ctx context.Context, t trace) Result {
	agent, err := r.Start(world.Rig{OneThread: true}, strace(r.World, t)...)
	if err != nil {
		return r.giveUp(err)
	}
	r.settled(ctx, agent)
	result := r.judge(ctx)
	claims := r.claims(ctx)
	switch {
	case len(claims) < 2:
		r.result.Reached = false
	case r.sent(string(claims[0].Key)) > 0:
		r.broke("%s was sent although its start could not be remembered", claims[0].Key)
		result.Violations = r.result.Violations
	}
	return result
}

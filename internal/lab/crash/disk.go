package crash

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
)

// tearCases cut the log within the transaction that an append did not return
// from: what a crash of the machine leaves of it.
func tearCases(_ context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, point := range []string{"after claim#1", "after started#1", "after receipt#1", "after outcome#1"} {
		for _, share := range []int{0, 1, 3, 10, 25, 40, 50, 60, 75, 90, 97, 99, 100} {
			if p.short && (point != "after claim#1" || share%50 != 0) {
				continue
			}
			cases = append(cases, scenario(fmt.Sprintf("%s, %d %% of the last transaction is left", point, share), episodes[1],
				func(ctx context.Context, r *run) Result { return r.torn(ctx, point, share) }))
		}
	}
	return cases, nil
}

// torn kills an agent right after an append, leaves a part of that append's
// transaction and lets another agent go on. Only started is remembered outside
// the ledger, before anything is sent: without it the next agent must observe.
func (r *run) torn(ctx context.Context, point string, share int) Result {
	r.result.Reached = r.runInto(ctx, world.Rig{At: point, Do: "kill"})
	wal := r.Path(world.LedgerFile + "-wal")
	ts, err := transactions(wal)
	if err != nil {
		return r.giveUp(err)
	}
	last := ts[len(ts)-1]
	cut := last.from + (last.to-last.from)*int64(share)/100
	if share == 99 {
		cut = last.to - 1
	}
	if err := os.Truncate(wal, cut); err != nil {
		return r.giveUp(err)
	}
	if share < 100 {
		// Its append did not return to the one who would have acted on it.
		acks, err := r.Acks()
		if err != nil || len(acks) == 0 {
			return r.giveUp(fmt.Errorf("%d acknowledged entries, %w", len(acks), err))
		}
		r.mayLose(acks[len(acks)-1].Seq - 1)
	}
	if point == "after started#1" && share < 100 {
		r.holds(ctx, "the ledger ends before what this host has seen")
		r.adopt(ctx)
		r.settle(ctx)
		return r.judge(ctx)
	}
	r.settle(ctx)
	return r.judge(ctx)
}

func (r *run) giveUp(err error) Result {
	r.broke("not carried out: %v", err)
	return r.result
}

// adopt goes on with what is there, in a person's name.
func (r *run) adopt(ctx context.Context) {
	if out, code, err := r.Command(ctx, "ledger", "adopt", "--reason", "crash suite"); err != nil || code != 0 {
		r.broke("setpoint ledger adopt: exit code %d, %v: %s", code, err, out)
	}
}

// flipCases invert single bytes of the ledger's files: of one whose agent ended
// in order, and of a log whose agent was killed.
func flipCases(_ context.Context, p *planner) ([]Case, error) {
	var cases []Case
	for _, f := range []struct {
		file  string
		parts int
	}{{"", 40}, {"-wal", 24}, {".seen", 6}, {".lock", 2}, {"-shm", 4}} {
		for i := range f.parts {
			if p.short && (i != f.parts/2 || f.parts < 20) {
				continue
			}
			cases = append(cases, scenario(fmt.Sprintf("setpoint.db%s, byte at %d/%d", f.file, i, f.parts), episodes[0],
				func(ctx context.Context, r *run) Result { return r.flipped(ctx, f.file, i, f.parts) }))
		}
	}
	return cases, nil
}

// flipped damages one byte. Whoever starts on it either finds the chain whole,
// and goes on as if nothing had happened; or it holds and says so. Acting on a
// chain that does not verify is neither. (What no entry rests on, a blob of old
// evidence or free space, is found by `setpoint ledger verify` alone.)
func (r *run) flipped(ctx context.Context, file string, part, parts int) Result {
	if file == "-wal" || file == "-shm" {
		r.result.Reached = r.runInto(ctx, world.Rig{At: "after outcome#1", Do: "kill"})
		r.breaks()
	} else {
		r.episode(ctx)
	}
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	if err := r.damage(file, part, parts); err != nil {
		return r.giveUp(err)
	}
	_, broken := r.chain(ctx)
	if !r.goesOnOrHolds(ctx, broken == nil) {
		return r.judgeBy(whole)
	}
	if r.verifies(ctx) {
		return r.judge(ctx)
	}
	left, err := r.chain(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	for digest, blob := range whole.Blobs {
		left.Blobs[digest] = blob
	}
	return r.judgeBy(left)
}

// damage inverts the byte in the middle of a part of a file.
func (r *run) damage(file string, part, parts int) error {
	path := r.Path(world.LedgerFile + file)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if file == "-wal" {
		// A log ends where its checksums do. What was appended after the last
		// start of an effect cost nothing to lose; what came before is missed.
		seen, err := seenfile.Seen(r.Path(world.LedgerFile + ".seen"))
		if err != nil {
			return err
		}
		r.mayLose(seen.Seq)
	}
	return flip(path, info.Size()*int64(part)/int64(parts)+info.Size()/int64(2*parts))
}

// goesOnOrHolds starts an agent and reports whether it ended the episode by
// itself. Otherwise it must not have started, or observe and tell a person.
func (r *run) goesOnOrHolds(ctx context.Context, sound bool) bool {
	before, requests := len(r.Log()), len(r.Actuator.Journal())
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return false
	}
	err = r.Until(ctx, agent, patience, func() bool {
		return agent.Ended() || r.paged() || r.over(ctx)
	})
	switch {
	case agent.Ended():
		r.refused(agent, before, "ledger")
		return false
	case err != nil:
		r.broke("it neither went on nor held: %v", err)
	case r.paged():
		wait(ctx, watched)
		if n := len(r.Actuator.Journal()) - requests; n > 0 {
			r.broke("%d requests beside the page about the ledger", n)
		}
		sound = false
	case !sound:
		r.broke("it acted on a chain that does not verify")
	}
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
	return sound
}

// copyCases put an older copy of the ledger in its place, or take it away.
func copyCases(_ context.Context, p *planner) ([]Case, error) {
	all := []struct {
		name string
		run  func(ctx context.Context, r *run) Result
	}{
		{"older copy put back between two runs", olderBetween},
		{"older copy put back while the agent runs", olderRunning},
		{"deleted between two runs", deletedBetween},
		{"deleted while the agent runs", deletedRunning},
		{"only the log deleted after a kill", logDeleted},
		{"another ledger in its place", another},
		{"a symbolic link in its place", linked},
	}
	var cases []Case
	for i, c := range all {
		if !p.short || i == 0 || i == 3 {
			cases = append(cases, scenario(c.name, episodes[0], c.run))
		}
	}
	return cases, nil
}

// olderBetween puts back what was there before the claim of an effect.
func olderBetween(ctx context.Context, r *run) Result {
	r.result.Reached = r.runInto(ctx, world.Rig{At: "before claim#1", Do: "kill"})
	older := r.keepAside()
	r.settle(ctx)
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	r.breaks()
	r.putBack(older)
	r.holds(ctx, "an older copy was put back")
	r.result.Report = r.judgeBy(whole).Report
	r.again(ctx)
	r.onceEach()
	return r.result
}

// again adopts what is there and lets an agent end the episode on it.
func (r *run) again(ctx context.Context) {
	if err := r.Reopen(); err != nil {
		r.broke("%v", err)
		return
	}
	r.adopt(ctx)
	r.settle(ctx)
}

// olderRunning does it under a running agent, whose service then breaks.
func olderRunning(ctx context.Context, r *run) Result {
	r.result.Reached = r.runInto(ctx, world.Rig{At: "before claim#1", Do: "kill"})
	older := r.keepAside()
	r.settle(ctx)
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	r.whileRunning(ctx, func() { r.putBack(older) }, "an older copy was put in its place")
	return r.judgeBy(whole)
}

// whileRunning does something to the ledger of an agent that watches a good
// service, which then breaks.
func (r *run) whileRunning(ctx context.Context, do func(), why string) {
	r.Source.Reset(time.Time{})
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	if err := r.Until(ctx, agent, patience, func() bool { return r.Ready(ctx) }); err != nil {
		r.broke("%v", err)
	}
	do()
	wait(ctx, 2*world.Sweep)
	r.breaks()
	r.observes(ctx, agent, why)
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
}

func deletedBetween(ctx context.Context, r *run) Result {
	r.episode(ctx)
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	r.remove()
	r.refuses(ctx, "no ledger", "setpoint ledger init")
	return r.judgeBy(whole)
}

func deletedRunning(ctx context.Context, r *run) Result {
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	r.whileRunning(ctx, r.remove, "its ledger was deleted")
	return r.judgeBy(whole)
}

// logDeleted loses everything since the last checkpoint of the database.
func logDeleted(ctx context.Context, r *run) Result {
	r.result.Reached = r.runInto(ctx, world.Rig{At: "after receipt#1", Do: "kill"})
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	for _, f := range []string{"-wal", "-shm"} {
		if err := os.Remove(r.Path(world.LedgerFile + f)); err != nil && !os.IsNotExist(err) {
			return r.giveUp(err)
		}
	}
	r.breaks()
	r.holds(ctx, "the log with a started effect was deleted")
	return r.judgeBy(whole)
}

// another is a ledger that was made anew: the one way to lose every key.
func another(ctx context.Context, r *run) Result {
	r.episode(ctx)
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	r.remove()
	if out, code, err := r.Command(ctx, "ledger", "init"); err != nil || code != 0 {
		r.broke("setpoint ledger init: exit code %d, %v: %s", code, err, out)
	}
	r.holds(ctx, "another ledger is in its place")
	return r.judgeBy(whole)
}

func linked(ctx context.Context, r *run) Result {
	r.episode(ctx)
	whole, err := r.Export(ctx)
	if err != nil {
		return r.giveUp(err)
	}
	path := r.Path(world.LedgerFile)
	if err := os.Rename(path, path+".moved"); err != nil {
		return r.giveUp(err)
	}
	if err := os.Symlink(path+".moved", path); err != nil {
		return r.giveUp(err)
	}
	r.refuses(ctx, "symbolic link")
	return r.judgeBy(whole)
}

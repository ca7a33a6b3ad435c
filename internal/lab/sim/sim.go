// Package sim plays Setpoint's pass in a made-up world, many times. It takes
// seeds and gives a Report: which invariants broke, if any, and how often each
// interesting state was reached.
//
// A seed decides everything: one goroutine, one clock, two or three replicas
// of the pass, one ledger in memory, an actuator with its own journal, a lossy
// network between them, people, and a proposer that means harm. The pass is a
// machine with one visible action in each move, in the order of
// internal/reconcile; between any two moves anything can happen. The ledger,
// the gate, the step, the budget and the tickets are the product's own code.
// What is checked is read from the ledger's entries, the journal and the sends
// alone (monitor.go), with arithmetic of its own.
//
// Explore plays the same machine without chance: all interleavings of two
// replicas, two windows and one fault.
package sim

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Options say what to play.
type Options struct {
	// Seeds are played from FirstSeed up.
	Seeds     int
	FirstSeed uint64
	// Steps is how many events a seed has before its faults stop.
	Steps int
	// Parallel is how many seeds are played at once; at least 1.
	Parallel int
	// Progress is told how many seeds are done, from several goroutines.
	Progress func(done int)
	// Trace gets a line for every step; it is for one seed.
	Trace io.Writer

	bad mutant
	// enough is how many violations end the run; 0: maxViolations.
	enough int64
}

// Violation is an invariant that broke.
type Violation struct {
	Seed      uint64 `json:"seed"`
	Step      int    `json:"step"`
	Invariant string `json:"invariant"`
	Text      string `json:"text"`
}

// Replay is the command that plays the seed again and prints each step.
func (v Violation) Replay(steps int) string {
	return fmt.Sprintf("setpoint-lab sim --seed %d --steps %d -v", v.Seed, steps)
}

// Counter says how often a state was reached.
type Counter struct {
	Name  string `json:"name"`
	Means string `json:"means"`
	Count int64  `json:"count"`
}

// Report is what was played and seen.
type Report struct {
	Seeds   int   `json:"seeds"`
	Steps   int64 `json:"steps"`
	Entries int64 `json:"entries"`
	Sends   int64 `json:"sends"`
	Effects int64 `json:"effects"`
	// Checked is how many entries, sends, effects and ends were held against
	// the invariants.
	Checked  int64     `json:"checked"`
	Counters []Counter `json:"counters"`
	// Unreached are the states that no seed reached: a green run without them
	// means little.
	Unreached  []string    `json:"unreached"`
	Violations []Violation `json:"violations"`
}

// OK reports whether nothing broke and everything was reached.
func (r Report) OK() bool { return len(r.Violations) == 0 && len(r.Unreached) == 0 }

// maxViolations ends a run: what comes after says the same.
const maxViolations = 20

// Run plays the seeds. The error is the context's.
func Run(ctx context.Context, o Options) (Report, error) {
	o.Parallel = max(1, o.Parallel)
	if o.enough == 0 {
		o.enough = maxViolations
	}
	var next, done atomic.Int64
	var broken atomic.Int64
	set, err := newSetting()
	if err != nil {
		return Report{}, err
	}
	tallies := make([]tally, o.Parallel)
	var wg sync.WaitGroup
	for i := range tallies {
		tallies[i].reached = coverage{}
		wg.Go(func() {
			for ctx.Err() == nil && broken.Load() < o.enough {
				n := next.Add(1) - 1
				if n >= int64(o.Seeds) {
					return
				}
				broken.Add(int64(tallies[i].play(set, o, o.FirstSeed+uint64(n))))
				if o.Progress != nil {
					o.Progress(int(done.Add(1)))
				}
			}
		})
	}
	wg.Wait()
	return report(tallies), ctx.Err()
}

// tally is what one worker counted.
type tally struct {
	Report
	reached coverage
}

// play plays one seed and returns how many invariants broke.
func (t *tally) play(set *setting, o Options, seed uint64) int {
	w := newWorld(set, seed, o.bad, t.reached)
	w.trace = o.Trace
	w.play(o.Steps)
	t.Seeds++
	t.Steps += int64(w.steps)
	t.Entries += int64(len(w.chain.entries))
	t.Sends += int64(len(w.mon.sends))
	t.Effects += int64(len(w.act.journal))
	t.Checked += w.mon.checked
	for _, b := range w.mon.broken {
		b.Seed = seed
		t.Violations = append(t.Violations, b)
	}
	return len(w.mon.broken)
}

func report(ts []tally) Report {
	var out Report
	all := coverage{}
	for _, t := range ts {
		out.Seeds += t.Seeds
		out.Steps += t.Steps
		out.Entries += t.Entries
		out.Sends += t.Sends
		out.Effects += t.Effects
		out.Checked += t.Checked
		out.Violations = append(out.Violations, t.Violations...)
		for name, n := range t.reached {
			all[name] += n
		}
	}
	out.Counters, out.Unreached = all.table()
	sortViolations(out.Violations)
	return out
}

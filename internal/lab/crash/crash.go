// Package crash is what etcd's robustness suite is for etcd: it kills, stops,
// cuts off and starves real agents at every place where an effect could be lost
// or repeated, lets them run on, and judges from outside. It takes the agent
// built with the tag crashtest, and gives a table of fault classes: points
// tried, double effects, acknowledged entries lost, invariants checked and
// violations.
//
// Nothing is believed of the agent but its exported ledger; the actuator's own
// journal is the oracle, and package checker the judge. The history of a run
// that failed is kept, with the command that tries exactly that point again.
package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
)

// Options are what a run of the suite is made of.
type Options struct {
	// Agent is the built agent with the crash tests' rig in it.
	Agent string
	// Short tries a sample of every class.
	Short bool
	// Only names classes; empty is all of them.
	Only []string
	// Point is one point by its name, e.g. "kill/auto/ok/kill at before claim#1".
	Point string
	// Points are several by their names.
	Points []string
	// Keep is a folder for histories; those of failed runs are always kept,
	// in a temporary folder when Keep is empty.
	Keep string
	// KeepAll keeps the histories of runs that passed too.
	KeepAll bool
	// Parallel is how many runs go on at a time; they mostly wait.
	Parallel int
	// Progress is told of each finished run; nil tells nobody.
	Progress func(done, all int, r Result)
}

// Case is one point of one class.
type Case struct {
	Class, Name string
	run         func(ctx context.Context, s *world.Slot) Result
}

// ID names the case on the command line.
func (c Case) ID() string { return c.Class + "/" + c.Name }

// Result is what became of one case.
type Result struct {
	Class string `json:"class"`
	Name  string `json:"name"`
	// Reached: the fault happened. A run that ended before it proves less.
	Reached bool `json:"reached"`
	// Skipped says why nothing was tried.
	Skipped string `json:"skipped,omitempty"`
	// Report is the checker's.
	Report checker.Report `json:"-"`
	// Violations are those of the report and of what the class demands.
	Violations []string `json:"violations,omitempty"`
	// Clicks is empty but in the class of that name.
	Clicks  Clicks  `json:"clicks,omitzero"`
	Seconds float64 `json:"seconds"`
	// History is the folder of a kept run, Replay the command that tries it
	// again.
	History string `json:"history,omitempty"`
	Replay  string `json:"replay,omitempty"`

	world *world.World
}

// class is a row of the table.
type class struct {
	name, says string
	// cases lists the points; it may run an agent to count them.
	cases func(ctx context.Context, p *planner) ([]Case, error)
}

// planner lists points. What it counted once it keeps.
type planner struct {
	*world.Slot
	short bool
	// points are those of a whole episode, calls the system calls of one.
	points map[world.Options][]string
	calls  map[string]int
}

// classes are the rows in their order.
func classes() []class {
	return []class{
		{"kill", "kill -9 at each append and send boundary", killCases},
		{"twice", "kill -9, and again while the next one clears up", twiceCases},
		{"syscall", "kill -9 before each system call on the ledger's files", syscallCases},
		{"error", "each append fails, before or after it is on the disk", errorCases},
		{"pause", "SIGSTOP at each boundary for longer than a permit lives", pauseCases},
		{"tear", "the last transaction of the log is cut off at each part", tearCases},
		{"flip", "single bytes of the ledger's files are inverted", flipCases},
		{"copy", "the ledger is replaced, deleted or older, between runs and under one", copyCases},
		{"space", "the disk is full, or no file may grow, at a boundary", spaceCases},
		{"failing", "a sync fails, or every write from one on", failingCases},
		{"second", "a second process on one SQLite file", secondCases},
		{"freeze", "a freeze while the agent hangs at a boundary", freezeCases},
		{"clock", "the clock is set wrong while it runs, at a boundary, across a restart", clockCases},
		{"click", "kill -9 from an approval in Slack to its effect, and inside its record", clickCases},
		{"replicas", "replicas on PostgreSQL, one stopped, killed, cut off or unheard", replicaCases},
	}
}

// Classes are the names of the fault classes with what they do.
func Classes() [][2]string {
	var out [][2]string
	for _, c := range classes() {
		out = append(out, [2]string{c.name, c.says})
	}
	return out
}

// Run tries every point and returns the table.
func Run(ctx context.Context, o Options) (Table, error) {
	if _, err := os.Stat(o.Agent); err != nil {
		return Table{}, fmt.Errorf("no agent at %s: `make crash` builds it with -tags crashtest", o.Agent)
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(classes(), func(c class) bool { return c.name == name }) {
			return Table{}, fmt.Errorf("no fault class %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	// Short names, since a socket's path may have 107 bytes.
	dir, err := os.MkdirTemp("", "sp-")
	if err != nil {
		return Table{}, err
	}
	s := &suite{o: o, dir: dir}
	s.o.Parallel = cmp.Or(max(0, o.Parallel), 4)
	table, err := s.run(ctx)
	return table, errors.Join(err, s.close())
}

func names() []string {
	var out []string
	for _, c := range classes() {
		out = append(out, c.name)
	}
	return out
}

// suite is one run of it.
type suite struct {
	o     Options
	dir   string
	slots []*world.Slot

	mu      sync.Mutex
	results []Result
	kept    int
}

func (s *suite) run(ctx context.Context) (Table, error) {
	began := time.Now()
	for i := range s.o.Parallel {
		slot, err := world.NewSlot(s.o.Agent, filepath.Join(s.dir, fmt.Sprintf("s%d", i)))
		if err != nil {
			return Table{}, err
		}
		s.slots = append(s.slots, slot)
	}
	cases, err := s.plan(ctx)
	if err != nil {
		return Table{}, err
	}
	if len(cases) == 0 {
		return Table{}, fmt.Errorf("no point of that name: %q", s.o.Point)
	}
	s.each(ctx, cases)
	if err := ctx.Err(); err != nil {
		return Table{}, err
	}
	return tabulate(s.results, time.Since(began)), nil
}

// plan lists the cases of the classes that were asked for.
func (s *suite) plan(ctx context.Context) ([]Case, error) {
	p := &planner{Slot: s.slots[0], short: s.o.Short && s.o.Point == "", points: map[world.Options][]string{}}
	var all []Case
	for _, c := range classes() {
		if len(s.o.Only) > 0 && !slices.Contains(s.o.Only, c.name) ||
			s.o.Point != "" && !strings.HasPrefix(s.o.Point, c.name+"/") {
			continue
		}
		cases, err := c.cases(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("list the points of %s: %w", c.name, err)
		}
		for i := range cases {
			cases[i].Class = c.name
		}
		all = append(all, cases...)
	}
	if s.o.Point != "" {
		all = slices.DeleteFunc(all, func(c Case) bool { return c.ID() != s.o.Point })
	}
	if len(s.o.Points) > 0 {
		all = slices.DeleteFunc(all, func(c Case) bool { return !slices.Contains(s.o.Points, c.ID()) })
	}
	return all, nil
}

// each runs the cases, each slot one at a time.
func (s *suite) each(ctx context.Context, cases []Case) {
	todo := make(chan Case)
	var wg sync.WaitGroup
	for _, slot := range s.slots {
		wg.Go(func() {
			for c := range todo {
				s.finish(len(cases), s.one(ctx, slot, c))
			}
		})
	}
	for _, c := range cases {
		if ctx.Err() != nil {
			break
		}
		todo <- c
	}
	close(todo)
	wg.Wait()
}

// one runs a case and keeps or removes its history.
func (s *suite) one(ctx context.Context, slot *world.Slot, c Case) Result {
	began := time.Now()
	r := c.run(ctx, slot)
	r.Class, r.Name, r.Seconds = c.Class, c.Name, time.Since(began).Seconds()
	if len(r.Violations) > 0 {
		r.Replay = fmt.Sprintf("setpoint-lab crash --agent %s --point %q", s.o.Agent, c.ID())
	}
	if r.world == nil {
		return r
	}
	if err := r.world.Close(); err != nil {
		r.Violations = append(r.Violations, "the actuator's journal: "+err.Error())
	}
	if len(r.Violations) > 0 || s.o.KeepAll {
		history, err := s.keep(r.world, c)
		if err != nil {
			r.Violations = append(r.Violations, "the history could not be kept: "+err.Error())
		}
		r.History = history
	}
	_ = os.RemoveAll(r.world.Dir) // What is left of a mount goes with the folder of the suite.
	return r
}

func (s *suite) finish(all int, r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	if s.o.Progress != nil {
		s.o.Progress(len(s.results), all, r)
	}
}

// keep copies a run's files to where they stay.
func (s *suite) keep(w *world.World, c Case) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Keep == "" {
		dir, err := os.MkdirTemp("", "setpoint-crash-")
		if err != nil {
			return "", err
		}
		s.o.Keep = dir
	}
	s.kept++
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(c.ID()))
	dir := filepath.Join(s.o.Keep, fmt.Sprintf("%03d-%s", s.kept, name))
	return dir, w.Save(dir)
}

func (s *suite) close() error {
	var errs []error
	for _, slot := range s.slots {
		errs = append(errs, slot.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

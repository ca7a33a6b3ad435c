// Package command is the executor of command.run: it takes a permit and gives
// the receipt of one run of a program, by its exit code; and it runs the
// action's statusArgv to ask what became of a key.
//
// No shell reads anything: a program gets its arguments one by one, and a
// parameter is a whole argument. A program sees the variables of the
// allow-list and SETPOINT_KEY and SETPOINT_DIGEST, works in the folder of
// setpoint.yaml and reads nothing from its standard input.
//
// It leads a process group of its own, so that a signal of the terminal that
// stops the agent does not reach it, and so that at the deadline the whole
// group is killed. A process that left the group (setsid) cannot be found and
// lives on. So does whatever the program left behind when it ended by itself:
// a restart often is a program that stays. Its output is closed a second later,
// as it is when the agent dies, and what writes to a closed output is ended by
// SIGPIPE: what is to stay must redirect its output.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Uses is the word in documents for this executor's one verb.
const Uses = "command.run"

// The variables that every program sees.
const (
	KeyVariable    = "SETPOINT_KEY"
	DigestVariable = "SETPOINT_DIGEST"
)

// Options are what the executor needs beside a permit.
type Options struct {
	// Allow are the programs that may be run (executors.command.allow), as exact
	// paths. It is checked again at each run: a document may not reach further
	// than setpoint.yaml, whatever was validated when it was loaded.
	Allow []string
	// EnvAllow are the variables that are handed on (executors.command.envAllow).
	EnvAllow []string
	// LookupEnv gives a variable of the agent; nil is the process's own.
	LookupEnv func(name string) (string, bool)
	// Directory is where programs work: the folder of setpoint.yaml.
	Directory string
	// Now is the clock for permits and receipts.
	Now func() time.Time
}

// Executor runs command.run actions. It is safe for concurrent use.
type Executor struct {
	allow     []string
	envAllow  []string
	lookup    func(string) (string, bool)
	directory string
	now       func() time.Time
}

var _ execute.Executor = (*Executor)(nil)

// New returns an executor. Relative paths are below the present working
// directory, as they are for whoever read the configuration.
func New(o Options) (*Executor, error) {
	if o.Now == nil {
		return nil, errors.New("command executor: no clock (Options.Now)")
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	e := &Executor{envAllow: slices.Compact(slices.Sorted(slices.Values(o.EnvAllow))), lookup: o.LookupEnv, now: o.Now}
	var err error
	if e.directory, err = filepath.Abs(o.Directory); err != nil {
		return nil, fmt.Errorf("command executor: folder %q: %w", o.Directory, err)
	}
	for _, program := range o.Allow {
		abs, err := filepath.Abs(program)
		if err != nil {
			return nil, fmt.Errorf("command executor: program %q: %w", program, err)
		}
		e.allow = append(e.allow, abs)
	}
	return e, nil
}

// Execute runs the permitted action once: it finds the program and all of its
// arguments, looks at the permit and at ready, and starts. The deadline of all
// of it is the action's timeout, counted from here.
func (e *Executor) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	refused := func(err error) (execute.Receipt, error) {
		return execute.Refused(e.now(), fmt.Errorf("%s for %s: %w", Uses, p.Key(), err))
	}
	argv, err := e.check(ctx, p)
	if err != nil {
		return refused(err)
	}
	a := p.Action()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	r, err := e.prepare(ctx, argv, KeyVariable+"="+string(p.Key()), DigestVariable+"="+p.Digest())
	if err != nil {
		return refused(err)
	}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := execute.LastLook(p, e.now, ready); err != nil {
		return refused(err)
	}
	return e.receipt(r.run(ctx)), nil
}

// check refuses whatever must not be run, and returns what to run.
func (e *Executor) check(ctx context.Context, p gate.Permit) ([]string, error) {
	a := p.Action()
	if !p.Valid(e.now()) {
		return nil, fmt.Errorf("%w: it was never minted, or expired", execute.ErrNoPermit)
	}
	if a.Uses != Uses {
		return nil, fmt.Errorf("%w: it is for %q", execute.ErrNoPermit, a.Uses)
	}
	// Computed, not trusted, as every executor does.
	digest, err := gate.Digest(p.Service(), p.Key(), a, p.Parameters())
	if err != nil || digest != p.Digest() {
		return nil, fmt.Errorf("%w: the action no longer has the digest that was gated", execute.ErrNoPermit)
	}
	if a.Timeout <= 0 {
		return nil, fmt.Errorf("action %q has no timeout, so its horizon is not known", a.Name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return fill(a.Target.Argv, p.Parameters())
}

// The exit codes that say something. Every other one is of a program that went
// wrong somewhere on its way, and may have changed anything.
const (
	exitApplied = 0
	exitNoOp    = 3
	exitNotNow  = 75 // EX_TEMPFAIL
)

// receipt is what the end of a program says.
func (e *Executor) receipt(end ending) execute.Receipt {
	r := execute.Receipt{At: e.now()}
	switch {
	case end.unstarted != nil:
		r.Effect = execute.Failed
		r.Detail = "not started: " + execute.CleanText(end.unstarted.Error(), execute.MaxDetail)
		return r
	case end.exited:
		r.Effect = byExit(end.code)
	default:
		r.Effect = execute.InDoubt
	}
	if r.Effect.Judged() {
		r.AppliedAt = r.At
	}
	r.Detail = end.why
	if text := execute.CleanText(end.output, execute.MaxDetail); text != "" {
		r.Detail += ": " + text
	}
	return r
}

func byExit(code int) execute.Effect {
	switch code {
	case exitApplied:
		return execute.Applied
	case exitNoOp:
		return execute.NoOp
	case exitNotNow:
		return execute.NotNow
	}
	return execute.AppliedWithError
}

// Package reload keeps a policy folder loaded. It takes the folder and gives,
// each time that a whole and good bundle is in it, that bundle as a policy: read
// at one moment, compiled strictly against the schema of the input, its own
// tests run. Everything else in the folder is a Fault, and the last good one
// stays.
//
// The digest of the folder decides, and is looked at in every interval. Events
// of the file system only make that sooner: losing all of them costs an
// interval.
package reload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

// TestsWithin bounds all tests of a bundle together: a test that does not end
// must not keep a later bundle, which mends it, from being read.
const TestsWithin = time.Minute

// Rules are what a bundle has to pass.
type Rules struct {
	// Deadline bounds one evaluation; that of a decision when zero.
	Deadline time.Duration
	// Lenient takes a bundle whose tests fail, or could not be run, as long as
	// it compiles: for one that binds nobody and is still being written.
	Lenient bool
	// TestsWithin bounds all tests together; TestsWithin when zero.
	TestsWithin time.Duration
}

// Loaded is a bundle that may rule.
type Loaded struct {
	Policy *rego.Policy
	// Tests is what its own tests gave.
	Tests regotest.Report
	// Warning is set where Lenient took it in spite of its tests.
	Warning *Fault
}

// Load reads a folder at this moment and loads what is in it. The error is a
// *Fault, or that of a ctx that ended.
func Load(ctx context.Context, fsys fs.FS, r Rules) (Loaded, error) {
	b, err := rego.Read(fsys)
	if err != nil {
		return Loaded{}, unreadable(err)
	}
	return load(ctx, b, r)
}

func load(ctx context.Context, b rego.Bundle, r Rules) (l Loaded, err error) {
	// A bundle that makes the compiler panic is a bundle that does not load.
	defer func() {
		if caught := recover(); caught != nil {
			l, err = Loaded{}, newFault(fmt.Errorf("policy is not loaded: panic: %v", caught), "", 0)
		}
	}()
	p, err := b.Load(rego.Options{Deadline: r.Deadline})
	if err != nil {
		return Loaded{}, uncompiled(err)
	}
	l = Loaded{Policy: p}
	var failed *Fault
	l.Tests, failed = tested(ctx, b, r)
	if err := ctx.Err(); err != nil {
		return Loaded{}, fmt.Errorf("policy is not loaded: stopped: %w", err)
	}
	switch {
	case failed != nil && r.Lenient:
		l.Warning = failed
	case failed != nil:
		return Loaded{}, failed
	}
	return l, nil
}

// tested runs the bundle's own tests.
func tested(ctx context.Context, b rego.Bundle, r Rules) (regotest.Report, *Fault) {
	within := r.TestsWithin
	if within <= 0 {
		within = TestsWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	report, err := regotest.Run(ctx, b, regotest.Options{})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return report, newFault(fmt.Errorf("the tests of the policy took longer than %s together", within), "", 0)
	case err != nil:
		return report, newFault(err, "", 0)
	case report.Failed > 0:
		return report, failing(report)
	}
	return report, nil
}

// Fault is why what is in a folder does not rule.
type Fault struct {
	err   error
	first string
	more  int
}

// newFault keeps the whole error, the first thing wrong ("": the error says it
// all) and how many more there are.
func newFault(err error, first string, more int) *Fault {
	if first == "" {
		first = err.Error()
	}
	return &Fault{err: err, first: first, more: more}
}

// Error returns everything that is wrong.
func (f *Fault) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.err }

// Brief is the first thing that is wrong, with file and line where it has one,
// and how many more there are.
func (f *Fault) Brief() string {
	if f.more > 0 {
		return fmt.Sprintf("%s; and %d more", f.first, f.more)
	}
	return f.first
}

func unreadable(err error) *Fault { return newFault(err, "", 0) }

func uncompiled(err error) *Fault {
	var findings rego.Findings
	if errors.As(err, &findings) && len(findings) > 0 {
		return newFault(err, findings[0].String(), len(findings)-1)
	}
	return newFault(err, "", 0)
}

func failing(r regotest.Report) *Fault {
	f := r.Failures[0]
	at := fmt.Sprintf("%s:%d", f.File, f.Line)
	what := "1 test of the policy"
	if r.Failed > 1 {
		what = fmt.Sprintf("%d tests of the policy", r.Failed)
	}
	return newFault(fmt.Errorf("%s failed, first %s at %s (`setpoint policy test` shows all)", what, f.Name, at),
		fmt.Sprintf("%s: test %s failed", at, f.Name), r.Failed-1)
}

// Package regotest runs the tests that authors write for a policy: those in Rego
// beside the rules, and tables of cases. It takes a bundle and gives a report
// with what failed, why, and what no test reached.
package regotest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	"github.com/open-policy-agent/opa/v1/cover"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// DefaultTimeout bounds one test in Rego.
const DefaultTimeout = 5 * time.Second

// Options change what Run does. The zero Options are for a reload: every test
// in Rego, and of a failing one no more than that it failed.
type Options struct {
	// Folder is the bundle's own path. It comes before the names of the
	// bundle's files in the report, so that a person can open them.
	Folder string
	// Run chooses tests whose full name, data.<package>.<rule>, it matches, and
	// cases of tables whose name it matches; nil: all.
	Run *regexp.Regexp
	// Timeout bounds one test in Rego; DefaultTimeout when zero. A case of a
	// table has the deadline of a decision.
	Timeout time.Duration
	// Tables are run beside the tests in Rego.
	Tables []Table
	// Detail looks again at each test that failed: which expression was false,
	// for which values, and which conditions kept rules from firing. It also
	// keeps what tests print.
	Detail bool
	// Trace adds what the engine did in a test that failed; Detail is then set.
	Trace Trace
	// Values shows the values of variables in a false expression and in a trace;
	// Detail is then set.
	Values bool
}

// Trace is how much of a trace is kept of a failing test.
type Trace string

// The traces.
const (
	TraceNone Trace = ""
	// TraceFails: the expressions that were false, and the way to them.
	TraceFails Trace = "fails"
	// TraceFull: every step.
	TraceFull Trace = "full"
)

// Run runs the tests of a bundle with the functions and the strictness of a
// decision, and measures what they reach. An error means that they could not
// be run; a failing test is in the Report.
func Run(ctx context.Context, bundle rego.Bundle, o Options) (r Report, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("policy tests: panic: %v", caught)
		}
	}()
	s := suite{Options: o, bundle: bundle, coverage: cover.New()}
	s.Detail = o.Detail || o.Values || o.Trace != TraceNone
	if s.Timeout <= 0 {
		s.Timeout = DefaultTimeout
	}
	var findings rego.Findings
	s.built, findings = bundle.Build()
	if bad := findings.Errors(); len(bad) > 0 {
		return Report{}, fmt.Errorf("policy tests are not run: %w", bad)
	}
	tests, err := s.rules(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("policy tests: %w", err)
	}
	cases, err := s.cases(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("policy tests: %w", err)
	}
	r = reportOf(append(tests, cases...))
	r.Revision = bundle.Revision()
	r.Coverage, r.Uncovered = s.covered()
	return r, nil
}

// suite is one run.
type suite struct {
	Options
	bundle   rego.Bundle
	built    rego.Built
	coverage *cover.Cover
}

// file is the path of a file of the bundle.
func (s *suite) file(name string) string { return path.Join(s.Folder, name) }

// stopped is the error of a run that somebody ended.
func stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped: %w", err)
	}
	return nil
}

// errNoRule cannot happen: a result names a rule that was compiled.
var errNoRule = errors.New("a test that ran is no rule of the bundle")

// Package regotest runs the tests that authors write for a policy: those in Rego
// beside the rules. It takes a bundle and gives a report with what failed and
// what no test reached.
package regotest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// testTimeout bounds one test of a policy.
const testTimeout = 5 * time.Second

// Report is the result of a policy's own tests.
type Report struct {
	Revision string `json:"revision"`
	Passed   int    `json:"passed"`
	Failed   int    `json:"failed"`
	Skipped  int    `json:"skipped"`
	// Coverage is the share of lines of rules, tests apart, that some test
	// reached, in percent.
	Coverage float64 `json:"coverage"`
	// Failures and Uncovered are sorted by file and line.
	Failures  []TestFailure `json:"failures"`
	Uncovered []Lines       `json:"uncovered"`
}

// OK reports whether every test passed and there was one.
func (r Report) OK() bool { return r.Failed == 0 && r.Passed > 0 }

// TestFailure is one test that failed or could not be evaluated.
type TestFailure struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Lines are lines of a file, first and last included.
type Lines struct {
	File  string `json:"file"`
	First int    `json:"first"`
	Last  int    `json:"last"`
}

// Options change what Run does.
type Options struct{}

// Run runs the tests of a bundle with the functions and the strictness of a
// decision, and measures what they reach. An error means that they could not
// be run; a failing test is in the Report.
func Run(ctx context.Context, bundle rego.Bundle, _ Options) (r Report, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("policy tests: panic: %v", caught)
		}
	}()
	b, findings := bundle.Build()
	if bad := findings.Errors(); len(bad) > 0 {
		return Report{}, fmt.Errorf("policy tests are not run: %w", bad)
	}
	coverage := cover.New()
	results, err := collect(ctx, b.Store(), coverage, b.Union())
	if err != nil {
		return Report{}, fmt.Errorf("policy tests: %w", err)
	}
	r = Report{Revision: bundle.Revision(), Failures: []TestFailure{}, Uncovered: []Lines{}}
	for _, t := range results {
		switch {
		case t.Skip:
			r.Skipped++
		case t.Pass():
			r.Passed++
		default:
			r.Failed++
			r.Failures = append(r.Failures, failureOf(t))
		}
	}
	slices.SortFunc(r.Failures, func(a, b TestFailure) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Name, b.Name))
	})
	r.Coverage, r.Uncovered = covered(coverage.Report(b.Rules), b.Rules)
	return r, nil
}

func collect(ctx context.Context, store storage.Store, coverage *cover.Cover, modules map[string]*ast.Module) ([]*tester.Result, error) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		return nil, err
	}
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetCompiler(compiler).SetStore(store).SetModules(modules).
		SetCoverageQueryTracer(coverage).RaiseBuiltinErrors(true).SetTimeout(testTimeout).RunTests(ctx, txn)
	if err != nil {
		return nil, rego.FindingsOf("", err)
	}
	var out []*tester.Result
	for t := range results {
		out = append(out, t)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stopped: %w", err)
	}
	return out, nil
}

func failureOf(t *tester.Result) TestFailure {
	f := TestFailure{Name: strings.TrimPrefix(t.Package, "data.") + "." + t.Name, Text: "failed"}
	if t.Location != nil {
		f.File, f.Line = t.Location.File, t.Location.Row
	}
	if t.Error != nil {
		f.Text = t.Error.Error()
	}
	for name, sub := range t.SubResults.Iter {
		if sub.Fail {
			f.Text += "; case " + strings.Join(name, "/")
		}
	}
	return f
}

// covered counts the files with rules alone: a test that runs covers itself.
func covered(r cover.Report, rules map[string]*ast.Module) (float64, []Lines) {
	yes, no := 0, 0
	missing := []Lines{}
	for file := range rules {
		f := r.Files[file]
		if f == nil {
			continue
		}
		yes, no = yes+f.CoveredLines, no+f.NotCoveredLines
		for _, n := range f.NotCovered {
			missing = append(missing, Lines{File: file, First: n.Start.Row, Last: n.End.Row})
		}
	}
	slices.SortFunc(missing, func(a, b Lines) int { return cmp.Or(strings.Compare(a.File, b.File), a.First-b.First) })
	if yes+no == 0 {
		return 0, missing
	}
	return 100 * float64(yes) / float64(yes+no), missing
}

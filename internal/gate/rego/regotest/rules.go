package regotest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// rules runs the tests in Rego.
func (s *suite) rules(ctx context.Context) ([]Test, error) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		return nil, err
	}
	store := s.built.Store()
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	defer store.Abort(ctx, txn)
	filter := ""
	if s.Run != nil {
		filter = s.Run.String()
	}
	// The passes that tell why a line is not covered are left out: they run every
	// test twice more.
	ch, err := tester.NewRunner().SetCompiler(compiler.WithEnablePrintStatements(s.Detail)).SetStore(store).
		SetModules(s.built.Union()).SetCoverageRuns(nil).SetCoverageQueryTracer(s.coverage).
		RaiseBuiltinErrors(true).SetTimeout(s.Timeout).Filter(filter).RunTests(ctx, txn)
	if err != nil {
		return nil, rego.FindingsOf("", err)
	}
	var results []*tester.Result
	for t := range ch {
		results = append(results, t)
	}
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	d := detail{suite: s, compiler: compiler, store: store, txn: txn}
	var out []Test
	for _, t := range results {
		tests, err := d.tests(ctx, t)
		if err != nil {
			return nil, err
		}
		out = append(out, tests...)
	}
	return out, stopped(ctx)
}

// tests are the test of a result, or its cases.
func (d detail) tests(ctx context.Context, r *tester.Result) ([]Test, error) {
	rule := d.rule(r.Location)
	if rule == nil {
		return nil, fmt.Errorf("%s.%s: %w", r.Package, r.Name, errNoRule)
	}
	pkg := strings.TrimPrefix(r.Package, "data.")
	one := Test{
		Name: pkg + "." + r.Name, Package: pkg, File: d.file(r.Location.File), Line: r.Location.Row,
		Result: Passed, Seconds: r.Duration.Seconds(), Output: strings.TrimSpace(string(r.Output)),
	}
	cases := leaves(r)
	switch {
	case r.Skip:
		one.Result, one.Text = Skipped, "todo"
	case r.Error != nil:
		// Which case it was of is not known, so all of it counts as one.
		one.Result, one.Text = Errored, d.errorText(r.Error)
	case len(cases) > 0:
		return d.explain(ctx, rule, d.split(one, cases))
	case r.Fail:
		one.Result, one.Text = Failed, "failed"
	case rule.Head.DocKind() == ast.PartialObjectDoc:
		one.Result, one.Text = Skipped, "no case ran"
	}
	return d.explain(ctx, rule, []caseTest{{Test: one}})
}

// errorText names the file as a person can open it.
func (d detail) errorText(err error) string {
	var of *topdown.Error
	if !errors.As(err, &of) || of.Location == nil || of.Location.File == "" {
		return err.Error()
	}
	return fmt.Sprintf("%s:%d: %s", d.file(of.Location.File), of.Location.Row, of.Message)
}

// caseTest is a test with the keys of its case, if it is one.
type caseTest struct {
	Test
	keys []string
	fail bool
}

// leaves are the cases of a data-driven test.
func leaves(r *tester.Result) (out []caseTest) {
	for keys, sub := range r.SubResults.Iter {
		if len(sub.SubResults) == 0 {
			out = append(out, caseTest{keys: keys, fail: sub.Fail})
		}
	}
	return out
}

func (d detail) split(whole Test, cases []caseTest) []caseTest {
	// What the test printed is shown where people look.
	printed := max(0, slices.IndexFunc(cases, func(c caseTest) bool { return c.fail }))
	for i := range cases {
		c := &cases[i]
		c.Test = whole
		c.Name = whole.Name + "[" + strings.Join(c.keys, "][") + "]"
		if c.fail {
			c.Result, c.Text = Failed, "failed"
		}
		if i > 0 {
			c.Seconds = 0
		}
		if i != printed {
			c.Output = ""
		}
	}
	return cases
}

// rule is the compiled rule of a result.
func (d detail) rule(at *ast.Location) *ast.Rule {
	for _, m := range d.compiler.Modules {
		for _, r := range m.Rules {
			if r.Loc() == at {
				return r
			}
		}
	}
	return nil
}

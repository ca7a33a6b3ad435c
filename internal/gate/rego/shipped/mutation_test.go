package shipped_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// mutation is one thing taken out of the i-th rule of a module.
type mutation struct {
	what string
	take func(m *ast.Module, i int)
}

// mutations of a rule: each condition taken out, and the whole rule.
func mutations(r *ast.Rule) []mutation {
	out := []mutation{{"the rule", func(m *ast.Module, i int) { m.Rules = append(m.Rules[:i:i], m.Rules[i+1:]...) }}}
	for j, condition := range r.Body {
		out = append(out, mutation{condition.String(), func(m *ast.Module, i int) {
			if body := m.Rules[i].Body; len(body) > 1 {
				m.Rules[i].Body = append(body[:j:j], body[j+1:]...)
			} else {
				m.Rules[i].Body = ast.NewBody(ast.NewExpr(ast.BooleanTerm(true)))
			}
		}})
	}
	return out
}

// Every rule and every condition is there for a reason: a bundle that lacks one
// must fail its own tests, or nobody would notice when somebody loosens it.
func TestEveryConditionIsTested(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the bundle's tests once for each condition")
	}
	t.Parallel()
	b := mutable{data: stock(t).Data, modules: map[string]*ast.Module{}}
	eachRego(t, func(name string, data []byte) { b.modules[name] = parsed(t, name, data) })
	n := 0
	for name, m := range b.modules {
		if isTest(name) {
			continue
		}
		for i, r := range m.Rules {
			for _, change := range mutations(r) {
				mutant := m.Copy()
				change.take(mutant, i)
				failed, compiled := b.fails(t, name, mutant)
				if !compiled {
					continue
				}
				if n++; !failed {
					t.Errorf("%s:%d: no test fails without %s", name, r.Location.Row, change.what)
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d things were taken out", n)
	}
}

// mutable is a bundle of which one module is put in place of another.
type mutable struct {
	data    map[string]any
	modules map[string]*ast.Module
}

// fails reports whether some test fails with the module in place of the one of
// that name, and whether it compiles so. The tests beside it are asked first:
// they are few and know best.
func (b mutable) fails(t *testing.T, name string, m *ast.Module) (failed, compiled bool) {
	t.Helper()
	if beside := b.modules[strings.TrimSuffix(name, ".rego")+"_test.rego"]; beside != nil {
		var names []string
		for _, r := range beside.Rules {
			names = append(names, regexp.QuoteMeta(r.Head.Ref().GroundPrefix().String()))
		}
		filter := `\.(` + strings.Join(names, "|") + `)$`
		if failed, compiled = b.run(t, name, m.Copy(), filter); failed || !compiled {
			return failed, compiled
		}
	}
	return b.run(t, name, m, "")
}

// run asks the tests whose names match, until one fails.
func (b mutable) run(t *testing.T, name string, m *ast.Module, filter string) (failed, compiled bool) {
	t.Helper()
	mutant := map[string]*ast.Module{name: m}
	for p := range b.modules {
		if p != name {
			mutant[p] = b.modules[p].Copy()
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := inmem.NewFromObjectWithOpts(b.data, inmem.OptReturnASTValuesOnRead(true))
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetStore(store).SetModules(mutant).RaiseBuiltinErrors(true).Filter(filter).RunTests(ctx, txn)
	if err != nil {
		return false, false
	}
	for r := range results {
		if !r.Pass() {
			failed = true
			stop()
		}
	}
	return failed, true
}

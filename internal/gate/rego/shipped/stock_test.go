package shipped_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/loader"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// stock is the folder as OPA's own loader reads it.
func stock(t testing.TB) *bundle.Bundle {
	t.Helper()
	b, err := loader.NewFileLoader().AsBundle(folder)
	if err != nil {
		t.Fatalf("not a bundle root: %v", err)
	}
	return b
}

// OPA's own loader, compiler and tester must agree with ours, so that authors
// may use stock tools: this is `opa check --strict` and `opa test`.
func TestStockTools(t *testing.T) {
	ctx := context.Background()
	b := stock(t)
	if b.Manifest.Roots == nil || !slices.Contains(*b.Manifest.Roots, "setpoint") {
		t.Errorf("roots %v", b.Manifest.Roots)
	}
	modules := map[string]*ast.Module{}
	for _, m := range b.Modules {
		modules[m.Path] = m.Parsed
	}
	store := inmem.NewFromObject(b.Data)
	err := storage.Txn(ctx, store, storage.WriteParams, func(txn storage.Transaction) error {
		runner := tester.NewRunner().SetCompiler(ast.NewCompiler().WithStrict(true)).SetStore(store).SetModules(modules)
		results, err := runner.RunTests(ctx, txn)
		if err != nil {
			return err
		}
		n := 0
		for r := range results {
			n++
			if !r.Pass() {
				t.Errorf("%s: %v", r, r.Error)
			}
		}
		if n < 60 {
			t.Errorf("only %d tests", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ask evaluates an expression over rules and tests together, and decodes what
// it gives into out.
func ask(t testing.TB, expression string, out any) {
	t.Helper()
	b := stock(t)
	opts := []func(*oparego.Rego){oparego.Query(expression), oparego.Store(inmem.NewFromObject(b.Data))}
	for _, m := range b.Modules {
		opts = append(opts, oparego.ParsedModule(m.Parsed))
	}
	rs, err := oparego.New(opts...).Eval(context.Background())
	if err != nil || len(rs) != 1 {
		t.Fatalf("%s: %v %v", expression, rs, err)
	}
	raw, err := json.Marshal(rs[0].Expressions[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
}

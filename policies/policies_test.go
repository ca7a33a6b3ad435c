package policies_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/loader"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/policies"
)

func TestCheck(t *testing.T) {
	for _, f := range rego.Check(policies.FS) {
		t.Error(f)
	}
	p, err := rego.Load(policies.FS, rego.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Rules() {
		if r.Title == "" || r.Remedy == "" || r.Line == 0 {
			t.Errorf("rule %s lacks title, remedy or line: %+v", r.Reason, r)
		}
	}
}

func TestOwnTests(t *testing.T) {
	r, err := run(t, policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("%s:%d: %s: %s", f.File, f.Line, f.Name, f.Text)
	}
	if r.Passed < 30 || r.Skipped > 0 {
		t.Errorf("%d passed, %d skipped", r.Passed, r.Skipped)
	}
	if r.Coverage < 95 {
		t.Errorf("coverage %.1f %%, want 95; not reached: %+v", r.Coverage, r.Uncovered)
	}
}

// OPA's own loader and tester must agree with ours, so that authors may use
// stock tools.
func TestStockTools(t *testing.T) {
	ctx := context.Background()
	b, err := loader.NewFileLoader().AsBundle(".")
	if err != nil {
		t.Fatalf("not a bundle root: %v", err)
	}
	if b.Manifest.Roots == nil || !slices.Contains(*b.Manifest.Roots, "setpoint") {
		t.Errorf("roots %v", b.Manifest.Roots)
	}
	modules := map[string]*ast.Module{}
	for _, m := range b.Modules {
		modules[m.Path] = m.Parsed
	}
	store := inmem.NewFromObject(b.Data)
	err = storage.Txn(ctx, store, storage.WriteParams, func(txn storage.Transaction) error {
		results, err := tester.NewRunner().SetStore(store).SetModules(modules).RunTests(ctx, txn)
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
		if n < 30 {
			t.Errorf("only %d tests", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFormatted(t *testing.T) {
	eachRego(t, func(name string, data []byte) {
		out, err := format.SourceWithOpts(name, data, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if string(out) != string(data) {
			t.Errorf("%s is not formatted; run opa fmt -w", name)
		}
	})
}

func TestEachFileHasTests(t *testing.T) {
	eachRego(t, func(name string, data []byte) {
		if strings.HasSuffix(name, "_test.rego") || name == "facts.rego" {
			return
		}
		if _, err := os.Stat(strings.TrimSuffix(name, ".rego") + "_test.rego"); err != nil {
			t.Errorf("%s has no test beside it", name)
		}
	})
}

func eachRego(t *testing.T, f func(name string, data []byte)) {
	t.Helper()
	names, err := fs.Glob(policies.FS, "*.rego")
	if err != nil || len(names) == 0 {
		t.Fatalf("no Rego in the embedded folder: %v", err)
	}
	for _, n := range names {
		data, err := fs.ReadFile(policies.FS, path.Clean(n))
		if err != nil {
			t.Fatal(err)
		}
		f(n, data)
	}
}

// The fixture of the tests must be an input that the gate could really build.
func TestFixtureIsAnInput(t *testing.T) {
	b, err := loader.NewFileLoader().AsBundle(".")
	if err != nil {
		t.Fatal(err)
	}
	opts := []func(*oparego.Rego){oparego.Query("data.setpoint.gate_test.complete"), oparego.Store(inmem.NewFromObject(b.Data))}
	for _, m := range b.Modules {
		opts = append(opts, oparego.ParsedModule(m.Parsed))
	}
	rs, err := oparego.New(opts...).Eval(context.Background())
	if err != nil || len(rs) != 1 {
		t.Fatalf("%v %v", rs, err)
	}
	raw, err := json.Marshal(rs[0].Expressions[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.ValidateInput(raw); err != nil {
		t.Error(err)
	}
}

func run(t *testing.T, fsys fs.FS) (regotest.Report, error) {
	t.Helper()
	b, err := rego.Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return regotest.Run(context.Background(), b, regotest.Options{})
}

package policies_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/setpoint-dev/setpoint/policies"
)

// Every condition is there for a reason: a bundle that lacks one must fail its
// own tests, or nobody would notice when somebody loosens it.
func TestEveryConditionIsTested(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the bundle's tests once for each condition")
	}
	t.Parallel()
	bundle := copyOf(t)
	n := 0
	eachRego(t, func(name string, data []byte) {
		if strings.HasSuffix(name, "_test.rego") {
			return
		}
		rules := len(parsed(t, name, data).Rules)
		for i := range rules {
			for j := 0; ; j++ {
				m := parsed(t, name, data)
				body := m.Rules[i].Body
				if len(body) < 2 || j >= len(body) {
					break
				}
				removed := body[j].String()
				m.Rules[i].Body = append(body[:j:j], body[j+1:]...)
				mutant := fstest.MapFS{}
				for p, f := range bundle {
					mutant[p] = f
				}
				src, err := format.AstWithOpts(m, format.Opts{RegoVersion: ast.RegoV1})
				if err != nil {
					t.Fatal(err)
				}
				mutant[name] = &fstest.MapFile{Data: src}
				r, err := run(t, mutant)
				if err != nil {
					continue // it does not even compile
				}
				n++
				if r.Failed == 0 {
					t.Errorf("%s:%d: no test fails without %q", name, m.Rules[i].Location.Row, removed)
				}
			}
		}
	})
	if n < 20 {
		t.Errorf("only %d conditions were taken out", n)
	}
}

func parsed(t *testing.T, name string, data []byte) *ast.Module {
	t.Helper()
	m, err := ast.ParseModuleWithOpts(name, string(data), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func copyOf(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(policies.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(policies.FS, p)
		out[p] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

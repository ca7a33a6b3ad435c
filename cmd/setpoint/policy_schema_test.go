package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"
)

// What is printed works with OPA's own tools: its loader takes the file, and its
// compiler finds a misspelt field with it.
func TestPrintedSchemaInOPA(t *testing.T) {
	var out strings.Builder
	a := &app{out: &out, err: &out, getenv: os.Getenv}
	if code := a.run([]string{"policy", "schema"}); code != exitFine {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	file := filepath.Join(t.TempDir(), "input.schema.json")
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	schemas, err := loader.Schemas(file)
	if err != nil {
		t.Fatal(err)
	}
	for rule, wrong := range map[string]string{
		`deny contains "a" if input.action.class == "auto"`:                             "",
		`deny contains "a" if input.live.replicas > 3`:                                  "",
		"deny contains \"a\" if {\n\tsome t in input.tried\n\tt.outcome == \"none\"\n}": "",
		`deny contains "a" if input.acton.class == "auto"`:                              "input.acton.class",
		`deny contains "a" if input.tried[_].outcom == "none"`:                          "outcom",
		`deny contains "a" if input.proposal.rationale == "x"`:                          "rationale",
	} {
		m, err := ast.ParseModuleWithOpts("gate.rego", "package setpoint.gate\n\n"+rule+"\n", ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		c := ast.NewCompiler().WithStrict(true).WithSchemas(schemas)
		c.Compile(map[string]*ast.Module{"gate.rego": m})
		switch {
		case wrong == "" && c.Failed():
			t.Errorf("%s: %v", rule, c.Errors)
		case wrong != "" && (!c.Failed() || !strings.Contains(c.Errors.Error(), wrong)):
			t.Errorf("%s: the misspelt field is not found: %v", rule, c.Errors)
		}
	}
}

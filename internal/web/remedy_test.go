package web_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// TestEveryReasonHasARemedy: whoever reads why nothing is done reads what would
// help, also for a reason that is added tomorrow.
func TestEveryReasonHasARemedy(t *testing.T) {
	// Nothing is in the way when these are said.
	helpful := []string{"met", "breach", "approved", "undo"}
	for _, pkg := range []string{"gate", "step"} {
		files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", pkg, err)
		}
		n := 0
		for _, file := range files {
			for name, code := range reasons(t, file) {
				n++
				if web.Remedy(code) == "" && !strings.Contains(" "+strings.Join(helpful, " ")+" ", " "+code+" ") {
					t.Errorf("%s.%s (%q) has no remedy", pkg, name, code)
				}
			}
		}
		if n < 5 {
			t.Errorf("only %d reasons were found in %s: do they have another name now?", n, pkg)
		}
	}
}

// reasons are the constants of a file whose names begin with Reason.
func reasons(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "Reason") || i >= len(spec.Values) {
				continue
			}
			if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if code, err := strconv.Unquote(lit.Value); err == nil {
					out[name.Name] = code
				}
			}
		}
		return true
	})
	return out
}

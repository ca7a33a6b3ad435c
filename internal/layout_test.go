package internal_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/setpoint-dev/setpoint"

// steps is the data's way, left to right: a package imports only packages to
// its left. A new edge that points right is a change of this list, which a
// reviewer sees.
var steps = []string{
	"spec", "measure", "compare", "budget", "propose", "gate", "approve", "execute", "escalate",
	"ledger", "step", "config", "reconcile", "web", "lab",
}

// pure are the step packages without clock and I/O. Their children hold it.
var pure = []string{
	"spec", "measure", "compare", "budget", "propose", "gate", "approve", "execute", "escalate",
	"ledger", "step", "config",
}

// impure are the packages of the standard library that the pure ones must not
// reach. net/url is values only; context is allowed in interfaces.
var impure = []string{"os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "log", "log/slog", "database/sql"}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// place gives the step of an import path below internal and whether it is a
// child of it.
func place(path string) (step string, child, ok bool) {
	rest, ok := strings.CutPrefix(path, module+"/internal/")
	if !ok {
		return "", false, false
	}
	step, below, child := strings.Cut(rest, "/")
	return step, child && below != "", true
}

func TestImportsPointLeft(t *testing.T) {
	for _, p := range list(t, module+"/internal/...") {
		from, fromChild, ok := place(p.ImportPath)
		if !ok {
			continue
		}
		at := slices.Index(steps, from)
		if at < 0 {
			t.Errorf("%s: no step of that name; the data's way is %s", p.ImportPath, strings.Join(steps, " "))
			continue
		}
		for _, imp := range p.Imports {
			to, toChild, ours := place(imp)
			switch {
			case !ours:
			case from == "lab" && slices.Contains(steps, to):
				// The lab puts everything together, like cmd.
			case toChild && to != from:
				t.Errorf("%s imports %s: a child is imported by cmd, lab and tests alone", p.ImportPath, imp)
			case toChild && !fromChild:
				t.Errorf("%s imports its own child %s", p.ImportPath, imp)
			case to != from && slices.Index(steps, to) >= at:
				t.Errorf("%s imports %s, which is to its right", p.ImportPath, imp)
			}
		}
	}
}

// config names slog for one method: a secret that is logged prints <secret>.
func TestPurePackagesReachNoClockAndNoWire(t *testing.T) {
	for _, name := range pure {
		for _, p := range list(t, module+"/internal/"+name) {
			for _, imp := range p.Imports {
				printsSecret := name == "config" && imp == "log/slog"
				if slices.Contains(impure, imp) && !printsSecret {
					t.Errorf("%s imports %s: a step package is pure, its I/O lives one folder down", p.ImportPath, imp)
				}
			}
		}
	}
}

// encodings come with Prometheus's PromQL parser, through the interfaces of its
// storage package. They hold no database.
var encodings = []string{
	"github.com/prometheus/prometheus/tsdb/chunkenc",
	"github.com/prometheus/prometheus/tsdb/chunks",
	"github.com/prometheus/prometheus/tsdb/fileutil",
}

func TestAgentLinksNothingOfTheLab(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"/cmd/setpoint").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("go list -deps gave %d packages, which cannot be the agent", len(deps))
	}
	for _, dep := range deps {
		tsdb := strings.HasPrefix(dep, "github.com/prometheus/prometheus/tsdb") && !slices.Contains(encodings, dep)
		if tsdb || strings.HasPrefix(dep, module+"/internal/lab") ||
			strings.HasSuffix(dep, "ledgertest") || strings.HasSuffix(dep, "executetest") {
			t.Errorf("the agent links %s", dep)
		}
	}
}

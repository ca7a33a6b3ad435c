package shipped_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/setpoint-dev/setpoint/policies"
)

// folder is the shipped bundle as it stands in the repository, for what is done
// with stock tools.
const folder = "../../../../policies"

// files reads every file below a root.
func files(t testing.TB, fsys fs.FS) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, p)
		out[p] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eachRego calls f for each Rego file of the shipped bundle, by name.
func eachRego(t testing.TB, f func(name string, data []byte)) {
	t.Helper()
	all := files(t, policies.FS)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if path.Ext(name) == ".rego" {
			n++
			f(name, all[name].Data)
		}
	}
	if n < 10 {
		t.Fatalf("only %d Rego files in the shipped bundle", n)
	}
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.rego") }

// Authors copy the folder: what is no policy does not belong in it.
func TestFolderHoldsPolicyAlone(t *testing.T) {
	kept := []string{".manifest", "data.yaml", "README.md", "embed.go"}
	for name := range files(t, os.DirFS(folder)) {
		if !slices.Contains(kept, name) && (path.Ext(name) != ".rego" || path.Dir(name) != ".") {
			t.Errorf("%s: the folder holds *.rego and %s alone", name, strings.Join(kept, ", "))
		}
	}
}

// What is built in is what stands in the repository, its page included.
func TestBuiltInIsTheFolder(t *testing.T) {
	want := files(t, os.DirFS(folder))
	delete(want, "embed.go")
	texts := func(m fstest.MapFS) map[string]string {
		out := map[string]string{}
		for name, f := range m {
			out[name] = string(f.Data)
		}
		return out
	}
	if diff := cmp.Diff(texts(want), texts(files(t, policies.FS))); diff != "" {
		t.Errorf("(-folder +built in):\n%s", diff)
	}
}

func TestFormatted(t *testing.T) {
	eachRego(t, func(name string, data []byte) {
		out, err := format.SourceWithOpts(name, data, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if string(out) != string(data) {
			t.Errorf("%s is not formatted; run setpoint policy fmt -w", name)
		}
	})
}

// fixtures are test files that stand beside no rules: the complete input, the
// types in data.yaml, and the table of what must never run alone.
var fixtures = []string{"data_test.rego", "fixture_test.rego", "never_test.rego"}

func TestEachFileHasTests(t *testing.T) {
	all := files(t, policies.FS)
	eachRego(t, func(name string, _ []byte) {
		beside := strings.TrimSuffix(name, ".rego") + "_test.rego"
		if isTest(name) {
			beside = strings.TrimSuffix(name, "_test.rego") + ".rego"
		}
		if all[beside] == nil && !slices.Contains(fixtures, name) {
			t.Errorf("%s stands without %s", name, beside)
		}
	})
}

// Whoever is woken reads title, description and remedy, and nothing else.
func TestEachRuleSpeaks(t *testing.T) {
	n := 0
	eachRego(t, func(name string, data []byte) {
		if isTest(name) {
			return
		}
		for _, r := range parsed(t, name, data).Rules {
			if !slices.Contains([]string{"auto", "approval", "escalate", "deny"}, string(r.Head.Name)) {
				continue
			}
			n++
			if len(r.Annotations) != 1 {
				t.Errorf("%s:%d: %d METADATA blocks, want 1", name, r.Location.Row, len(r.Annotations))
				continue
			}
			a := r.Annotations[0]
			remedy, _ := a.Custom["remedy"].(string)
			if a.Title == "" || a.Description == "" || remedy == "" {
				t.Errorf("%s:%d: title %q, description %q, remedy %q: none may be empty", name, r.Location.Row, a.Title, a.Description, remedy)
			}
			if strings.HasSuffix(a.Title, ".") || strings.HasSuffix(remedy, ".") {
				t.Errorf("%s:%d: title and remedy are joined to a sentence, so they end without a period", name, r.Location.Row)
			}
		}
	})
	if n < 15 {
		t.Errorf("only %d rules were read", n)
	}
}

func parsed(t testing.TB, name string, data []byte) *ast.Module {
	t.Helper()
	m, err := ast.ParseModuleWithOpts(name, string(data), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

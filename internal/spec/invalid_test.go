package spec_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

var update = flag.Bool("update", false, "write the golden .err files")

var readers = []spec.Reader{openslo.Reader{}}

func read(t testing.TB, name string) spec.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: name, Data: data}
}

// TestInvalid loads each testdata/invalid-<what>.yaml beside base.yaml, which
// is valid, and compares the whole error with invalid-<what>.err.
func TestInvalid(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	base := read(t, "base.yaml")
	if _, err := spec.Load([]spec.File{base}, readers); err != nil {
		t.Fatalf("base.yaml is valid by itself, got:\n%v", err)
	}
	for _, name := range names {
		name := filepath.Base(name)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			set, err := spec.Load([]spec.File{base, read(t, name)}, readers)
			if err == nil {
				t.Fatal("loads without an error")
			}
			if diff := cmp.Diff(spec.Set{}, set); diff != "" {
				t.Errorf("half-loads: (-want, +got)\n%s", diff)
			}
			golden(t, filepath.Join("testdata", strings.TrimSuffix(name, ".yaml")+".err"), err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("no golden text (run with -update once, and read what it wrote): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: (-want, +got)\n%s", file, diff)
	}
}

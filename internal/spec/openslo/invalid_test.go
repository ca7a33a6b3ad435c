package openslo_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden .err files")

// TestInvalid compares the whole error of each testdata/invalid-<what>.yaml
// with invalid-<what>.err. The files invalid-case-… are SLOs that people have
// in public, shortened, with their source in the second line.
func TestInvalid(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			set, err := loadFiles(t, name)
			if err == nil {
				t.Fatal("loads without an error")
			}
			if diff := cmp.Diff(spec.Set{}, set); diff != "" {
				t.Errorf("half-loads: (-want, +got)\n%s", diff)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".err", err.Error()+"\n")
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

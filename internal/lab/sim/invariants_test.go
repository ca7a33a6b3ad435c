package sim_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInvariantsAreNamed: the list is what the monitors can break.
func TestInvariantsAreNamed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var broken, listed []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`breaks\("([a-z-]+)"`).FindAllSubmatch(text, -1) {
			broken = append(broken, string(m[1]))
		}
		if file == "invariants.go" {
			for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)",$`).FindAllSubmatch(text, -1) {
				listed = append(listed, string(m[1]))
			}
		}
	}
	slices.Sort(broken)
	if diff := cmp.Diff(slices.Compact(broken), listed); diff != "" {
		t.Errorf("invariants.go differs from what the monitors name (-monitors, +list):\n%s", diff)
	}
}

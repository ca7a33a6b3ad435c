package mutants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/mutants"
)

func tiny(old, new string, catchers ...mutants.Catcher) mutants.Mutant {
	return mutants.Mutant{Edits: []mutants.Edit{{File: "tiny.go", Old: old, New: new}}, Catchers: catchers}
}

func run(names string) mutants.Catcher { return mutants.Catcher{Package: ".", Run: names} }

// What becomes of a mutant, on a module of its own.
func TestRun(t *testing.T) {
	down := run("TestDown$")
	down.Timeout = time.Second
	downHangs := down
	downHangs.HangCatches = true
	tests := map[string]struct {
		reason  string
		mutant  mutants.Mutant
		want    mutants.Verdict
		test    string
		because string
	}{
		"caught": {"a subtest fails, and is named", tiny("a < b", "a <= b", run("TestLess$")), mutants.Caught, "TestLess/equal", ""},
		"second": {"the first catcher passes, the second fails", tiny("a < b", "a <= b", run("TestLess$/smaller"), run("TestLess$/equal")),
			mutants.Caught, "TestLess/equal", ""},
		"survives":       {"no test looks at it", tiny("Most = 10", "Most = 11", run("TestLess$")), mutants.Survived, "", "passed: . -run 'TestLess$'"},
		"nothing":        {"a mutant without catchers is not caught", tiny("Most = 10", "Most = 11"), mutants.Survived, "", ""},
		"gone":           {"the text is not there", tiny("a > b", "a >= b", run("TestLess$")), mutants.Stale, "", "holds its text 0 times"},
		"twice":          {"the text is not unique", tiny("// ", "//", run("TestLess$")), mutants.Stale, "", "times, want once"},
		"no change":      {"it changes nothing", tiny("a < b", "a < b", run("TestLess$")), mutants.Stale, "", "holds its text 1 times"},
		"no file":        {"the file is gone", mutants.Mutant{Edits: []mutants.Edit{{File: "huge.go", Old: "a", New: "b"}}}, mutants.Stale, "", "huge.go"},
		"does not build": {"a compile error is no catch", tiny("a < b", "a < c", run("TestLess$")), mutants.Broken, "", "undefined: c"},
		"no test":        {"a pattern that names nothing catches nothing", tiny("a < b", "a <= b", run("TestMore$")), mutants.Broken, "", "no test has that name"},
		"skipped":        {"neither does a test that is skipped", tiny("a < b", "a <= b", run("TestSkips$")), mutants.Broken, "", "skipped: "},
		"fails alone":    {"a test that fails without the mutant proves nothing", tiny("a < b", "a <= b", run("TestAlwaysFails$")), mutants.Broken, "", "fails without the mutant, too: TestAlwaysFails"},
		"hangs":          {"a test that never ends is no catch", tiny("n--", "n++; n--", down), mutants.Broken, "", "never ended"},
		"hang catches":   {"unless the mutant says so", tiny("n--", "n++; n--", downHangs), mutants.Caught, "TestDown", ""},
		"panic":          {"a panic of another goroutine names the test, too", tiny("return n", "return n + 1", run("TestGoroutine$")), mutants.Caught, "TestGoroutine (panic)", ""},
		"exits":          {"an end that names no test is none", tiny("Most = 10", "Most = 11", run("TestExits$")), mutants.Broken, "", "names no test"},
	}
	var list []mutants.Mutant
	for name, tt := range tests {
		tt.mutant.Name = name
		list = append(list, tt.mutant)
	}
	seen := 0
	table, err := mutants.Run(t.Context(), list, mutants.Options{
		Root: "testdata/tiny", Progress: func(int, int, mutants.Result) { seen++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range table.Items {
		tt := tests[got.Name]
		if got.Verdict != tt.want || got.Test != tt.test || !strings.Contains(got.Why, tt.because) {
			t.Errorf("%s: %s\ngot  %s by %q: %s\nwant %s by %q: %s", got.Name, tt.reason, got.Verdict, got.Test, got.Why, tt.want, tt.test, tt.because)
		}
	}
	if seen != len(tests) || table.Caught != 4 || table.Survived != 2 || table.Faulty != len(tests)-6 {
		t.Errorf("%d seen; %d caught, %d survived, %d faulty of %d", seen, table.Caught, table.Survived, table.Faulty, len(tests))
	}
}

// The tree is as it was, also while mutants run.
func TestTreeIsNotTouched(t *testing.T) {
	before, err := os.ReadFile(filepath.Join("testdata", "tiny", "tiny.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = mutants.Run(t.Context(), []mutants.Mutant{tiny("a < b", "a <= b", run("TestLess$"))}, mutants.Options{
		Root: "testdata/tiny", Progress: func(int, int, mutants.Result) {
			after, err := os.ReadFile(filepath.Join("testdata", "tiny", "tiny.go"))
			if err != nil || string(after) != string(before) {
				t.Errorf("tiny.go was changed (%v)", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every mutant of the product fits the tree: one that does not is brought up to
// date with the change that moved its text.
func TestListIsUpToDate(t *testing.T) {
	if err := mutants.Check("../../..", mutants.List()); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, m := range mutants.List() {
		if names[m.Name] || m.Breaks == "" || len(m.Catchers) == 0 {
			t.Errorf("%q: a mutant has a name of its own, says what it breaks and has catchers", m.Name)
		}
		names[m.Name] = true
	}
}

func TestSelect(t *testing.T) {
	list := []mutants.Mutant{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	tests := map[string]struct {
		reason string
		names  []string
		want   []mutants.Mutant
		fails  bool
	}{
		"all":     {"no name is all", nil, list, false},
		"some":    {"the order is that of the list", []string{"c", "a"}, []mutants.Mutant{{Name: "a"}, {Name: "c"}}, false},
		"unknown": {"a typo must not look like success", []string{"a", "d"}, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := mutants.Select(list, tt.names)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
				t.Errorf("%s: error %v (-want +got):\n%s", tt.reason, err, diff)
			}
		})
	}
}

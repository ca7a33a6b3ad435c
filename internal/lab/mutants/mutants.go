// Package mutants breaks the product on purpose, one line at a time, and asks
// which test notices. It takes a list of mutants and the folder of a module, and
// gives a table: what was broken, and what caught it.
//
// A suite that passes says little until it is known to fail. So each promise has
// a mutant that breaks it, and each mutant names the tests that must see it, the
// cheapest first. The tree is never touched: a changed file lies in a temporary
// folder, and the compiler is told to read it instead (go build -overlay).
//
// Four things are told apart. Caught: a test failed that passes without the
// mutant. Survived: every test of its list passed. Stale: the text to change is
// gone, or not unique, so the mutant must be brought up to date. Broken: it does
// not compile, or its catcher fails by itself, so it proves nothing.
package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Edit is one change of a file. Old must be in it exactly once.
type Edit struct {
	// File is relative to the module.
	File     string
	Old, New string
}

// Catcher is one run of go test that may notice a mutant.
type Catcher struct {
	// Package is relative to the module, as in ./internal/gate.
	Package string
	// Run is go test's -run.
	Run string
	// Short is go test's -short.
	Short bool
	// Timeout is of the tests; 2m when zero.
	Timeout time.Duration
	// HangCatches says that a mutant may show by a test that never ends.
	// Otherwise that is a fault of the mutant.
	HangCatches bool
}

func (c Catcher) String() string { return fmt.Sprintf("%s -run '%s'", c.Package, c.Run) }

// Mutant is one way to break the product.
type Mutant struct {
	Name string
	// Breaks is the promise that is broken, for people.
	Breaks string
	Edits  []Edit
	// Catchers are tried in turn until one fails.
	Catchers []Catcher
}

// Verdict is what became of a mutant.
type Verdict string

// The verdicts.
const (
	Caught   Verdict = "caught"
	Survived Verdict = "survived"
	Stale    Verdict = "stale"
	Broken   Verdict = "broken"
)

// Result is what became of one mutant.
type Result struct {
	Name    string  `json:"name"`
	Breaks  string  `json:"breaks"`
	Verdict Verdict `json:"verdict"`
	// Package and Test are what caught it.
	Package string `json:"package,omitempty"`
	Test    string `json:"test,omitempty"`
	// Why is what is wrong with a stale or broken one, and what a survivor
	// passed.
	Why     string  `json:"why,omitempty"`
	Seconds float64 `json:"seconds"`
}

// errStale says that a mutant no longer fits its file.
var errStale = errors.New("the mutant must be brought up to date")

// Check says whether every edit fits the files below root; the error wraps one
// for each that does not.
func Check(root string, list []Mutant) error {
	var errs []error
	for _, m := range list {
		if _, err := changed(root, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// changed gives the files of a mutant as they are to be read, by absolute path.
func changed(root string, m Mutant) (map[string][]byte, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range m.Edits {
		path := filepath.Join(root, filepath.FromSlash(e.File))
		text, again := out[path]
		if !again {
			if text, err = os.ReadFile(path); err != nil {
				return nil, fmt.Errorf("%w: %w", errStale, err)
			}
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 || e.Old == e.New {
			return nil, fmt.Errorf("%w: %s holds its text %d times, want once: %q", errStale, e.File, n, e.Old)
		}
		out[path] = bytes.Replace(text, []byte(e.Old), []byte(e.New), 1)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it changes nothing", errStale)
	}
	return out, nil
}

// Select gives the mutants of these names, in the order of the list; all for
// none. A name that is not in the list is an error.
func Select(list []Mutant, names []string) ([]Mutant, error) {
	if len(names) == 0 {
		return list, nil
	}
	var out []Mutant
	for _, m := range list {
		if slices.Contains(names, m.Name) {
			out = append(out, m)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(m Mutant) bool { return m.Name == name }) {
			return nil, fmt.Errorf("no mutant is called %q; --list shows them", name)
		}
	}
	return out, nil
}

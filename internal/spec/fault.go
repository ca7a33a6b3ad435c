package spec

import (
	"slices"
	"strings"
)

// Fault is one thing wrong with one document.
type Fault struct {
	Pos Position
	// Path is the place inside the document, e.g. spec.actions[0].class.
	Path string
	// Text says what is wrong and what to do.
	Text string
}

// Error returns file:line: path: text.
func (f Fault) Error() string {
	s := f.Pos.String() + ": "
	if f.Path != "" {
		s += f.Path + ": "
	}
	return s + f.Text
}

// Faults are all that is wrong. Nothing is loaded when there is one.
type Faults []Fault

// Error returns one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the faults in the order of file, line and path.
func (fs Faults) Sorted() Faults {
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b Fault) int {
		if c := strings.Compare(a.Pos.File, b.Pos.File); c != 0 {
			return c
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out
}

// Err returns nil when there is no fault.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs.Sorted()
}

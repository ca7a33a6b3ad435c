package regotest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/trace"
)

// Report is the result of a policy's own tests.
type Report struct {
	Revision string `json:"revision"`
	Passed   int    `json:"passed"`
	// Failed are those that failed or could not be evaluated.
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Coverage is the share of lines of rules, tests apart, that some test
	// reached, in percent.
	Coverage float64 `json:"coverage"`
	// Failures, Uncovered and Tests are sorted by file and line.
	Failures  []TestFailure `json:"failures"`
	Uncovered []Lines       `json:"uncovered"`
	Tests     []Test        `json:"tests"`
}

// OK reports whether every test passed and there was one.
func (r Report) OK() bool { return r.Failed == 0 && r.Passed > 0 }

// TestFailure is one test that failed or could not be evaluated.
type TestFailure struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Lines are lines of a file, first and last included.
type Lines struct {
	File  string `json:"file"`
	First int    `json:"first"`
	Last  int    `json:"last"`
}

// Result is what became of one test.
type Result string

// The results. An error is a test that could not be evaluated.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Errored Result = "error"
	Skipped Result = "skipped"
)

// Test is one rule test_… of the bundle, one case of such a rule, or one case
// of a table.
type Test struct {
	// Name is <package>.<rule>, with the case in brackets, or the name of a case
	// of a table.
	Name string `json:"name"`
	// Package is of a test in Rego; empty for a case of a table.
	Package string `json:"package,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Result  Result `json:"result"`
	// Seconds the test took. The cases of one rule run together; the first has
	// the time of them all.
	Seconds float64 `json:"durationSeconds"`
	// Text says why, unless it passed.
	Text string `json:"text,omitempty"`
	// FailedAt is the expression of the test that was false.
	FailedAt *Expression `json:"failedAt,omitempty"`
	// Stopped are the conditions that kept rules from firing where it failed.
	Stopped []Expression `json:"stopped,omitempty"`
	// Want and Got are of a case of a table.
	Want *Outcome `json:"want,omitempty"`
	Got  *Outcome `json:"got,omitempty"`
	// Fired are the rules that fired in a case of a table, strictest first.
	Fired []gate.Rule `json:"fired,omitempty"`
	// Missed are the rules that a case of a table wants and that did not fire,
	// with the expression at which each stopped.
	Missed []trace.Rule `json:"missed,omitempty"`
	// Output is what the test printed (of several cases, at the first that failed),
	// Trace what the engine did.
	Output string `json:"output,omitempty"`
	Trace  string `json:"trace,omitempty"`
}

// bad reports whether the test failed or could not be evaluated.
func (t Test) bad() bool { return t.Result == Failed || t.Result == Errored }

// Expression is one expression that was false or undefined.
type Expression struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Text is the source in one line.
	Text string `json:"text"`
	// Input are the values of the input that it looks at.
	Input []Value `json:"input,omitempty"`
	// Values is the source with the value of each variable below it.
	Values string `json:"values,omitempty"`
}

// Value is the value of a name, as Rego writes it.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Outcome is a verdict of policy alone with the reasons that made it.
type Outcome struct {
	Verdict gate.Verdict `json:"verdict"`
	// Reasons are sorted. In what a case wants, null stands for any.
	Reasons []string `json:"reasons"`
}

// String is the outcome for people.
func (o Outcome) String() string {
	switch {
	case o.Reasons == nil:
		return o.Verdict.String()
	case len(o.Reasons) == 0:
		return o.Verdict.String() + " by no rule"
	}
	return o.Verdict.String() + " by " + strings.Join(o.Reasons, ", ")
}

func reportOf(tests []Test) Report {
	slices.SortStableFunc(tests, func(a, b Test) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Name, b.Name))
	})
	r := Report{Failures: []TestFailure{}, Uncovered: []Lines{}, Tests: tests}
	if r.Tests == nil {
		r.Tests = []Test{}
	}
	for _, t := range tests {
		switch {
		case t.bad():
			r.Failed++
			r.Failures = append(r.Failures, TestFailure{t.Name, t.File, t.Line, t.Text})
		case t.Result == Skipped:
			r.Skipped++
		default:
			r.Passed++
		}
	}
	return r
}

// covered counts the files with rules alone: a test that runs covers itself.
func (s *suite) covered() (float64, []Lines) {
	yes, no := 0, 0
	missing := []Lines{}
	report := s.coverage.Report(s.built.Rules)
	for file := range s.built.Rules {
		f := report.Files[file]
		if f == nil {
			continue
		}
		yes, no = yes+f.CoveredLines, no+f.NotCoveredLines
		for _, n := range f.NotCovered {
			missing = append(missing, Lines{File: s.file(file), First: n.Start.Row, Last: n.End.Row})
		}
	}
	if yes+no == 0 {
		return 0, missing
	}
	return 100 * float64(yes) / float64(yes+no), joined(missing)
}

// joined makes one of lines that follow each other, sorted by file and line.
func joined(all []Lines) []Lines {
	slices.SortFunc(all, func(a, b Lines) int { return cmp.Or(strings.Compare(a.File, b.File), a.First-b.First) })
	out := all[:0]
	for _, l := range all {
		if n := len(out); n > 0 && out[n-1].File == l.File && l.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, l.Last)
			continue
		}
		out = append(out, l)
	}
	return out
}

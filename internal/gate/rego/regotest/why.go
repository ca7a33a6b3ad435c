package regotest

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Why are lines for people about a test that failed: the expression that was
// false, what kept rules from firing, the rules that fired, and the trace. What
// the report does not hold is left out.
func (t Test) Why() (lines []string) {
	if !t.bad() {
		return nil
	}
	if t.FailedAt != nil {
		lines = append(lines, t.FailedAt.lines("false at")...)
	}
	for _, x := range t.Stopped {
		lines = append(lines, x.lines("stopped ")...)
	}
	for _, r := range t.Fired {
		lines = append(lines, ruleLine(r))
	}
	for _, r := range t.Missed {
		for _, l := range r.Lines() {
			lines = append(lines, "missed   "+l)
		}
	}
	if t.Trace != "" {
		lines = append(lines, strings.Split(strings.TrimRight(t.Trace, "\n"), "\n")...)
	}
	return lines
}

func (x Expression) lines(what string) []string {
	line := fmt.Sprintf("%s %s:%d: %s", what, x.File, x.Line, x.Text)
	for i, v := range x.Input {
		if i == 0 {
			line += " — "
		} else {
			line += ", "
		}
		line += v.Name + " is " + v.Value
	}
	out := []string{line}
	if x.Values == "" {
		return out
	}
	for _, l := range strings.Split(x.Values, "\n") {
		out = append(out, "    "+l)
	}
	return out
}

func ruleLine(r gate.Rule) string {
	return fmt.Sprintf("fired    %s:%d: %s: %s", r.File, r.Line, r.Reason, r.Title)
}

// Printed are the lines that the test printed.
func (t Test) Printed() []string {
	if t.Output == "" {
		return nil
	}
	return strings.Split(t.Output, "\n")
}

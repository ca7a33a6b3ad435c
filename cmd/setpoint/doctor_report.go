package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// The results of a check.
const (
	resultOK   = "ok"
	resultWarn = "warn"
	resultFail = "fail"
	resultSkip = "skip"
)

// checkItem is one line of the doctor's table.
type checkItem struct {
	// Check is a group, or a group and what of it, as in sources/clock.
	Check string `json:"check"`
	// Subject is what was looked at: the name of a source, an endpoint, a file.
	Subject string `json:"subject"`
	// Result is ok, warn, fail or skip.
	Result string `json:"result"`
	Detail string `json:"detail"`
	// Remedy says what to do; "" unless Result is warn or fail.
	Remedy string `json:"remedy"`
	// TookSeconds is of the check that gave the line; some give several.
	TookSeconds float64 `json:"tookSeconds"`
}

// doctorReport is the answer of `doctor -o json`.
type doctorReport struct {
	web.Meta
	// Counts are how many items have each result.
	Counts map[string]int `json:"counts"`
	Items  []checkItem    `json:"items"`
}

func reportOf(items []checkItem) doctorReport {
	r := doctorReport{
		Meta:   web.Meta{APIVersion: spec.Group, Kind: "Doctor"},
		Counts: map[string]int{resultOK: 0, resultWarn: 0, resultFail: 0, resultSkip: 0}, Items: []checkItem{},
	}
	for _, i := range items {
		// What others wrote is one line here, too.
		i.Detail = strings.TrimSpace(strings.Map(printable, i.Detail))
		r.Counts[i.Result]++
		r.Items = append(r.Items, i)
	}
	return r
}

// subject is a check of one thing, whose lines it makes.
type subject struct{ check, name string }

func (s subject) fine(format string, args ...any) checkItem {
	return checkItem{Check: s.check, Subject: s.name, Result: resultOK, Detail: fmt.Sprintf(format, args...)}
}

func (s subject) skipped(format string, args ...any) checkItem {
	return checkItem{Check: s.check, Subject: s.name, Result: resultSkip, Detail: fmt.Sprintf(format, args...)}
}

// warned and failed need a remedy: a line that nobody can act on is noise.
func (s subject) warned(detail, remedy string) checkItem {
	return checkItem{Check: s.check, Subject: s.name, Result: resultWarn, Detail: detail, Remedy: remedy}
}

func (s subject) failed(detail, remedy string) checkItem {
	return checkItem{Check: s.check, Subject: s.name, Result: resultFail, Detail: detail, Remedy: remedy}
}

// skipAll is one line for a group that cannot be looked at.
func skipAll(group, why string) []examine {
	return []examine{{group: group, limit: localLimit, run: func(context.Context) []checkItem {
		return []checkItem{subject{group, ""}.skipped("%s", why)}
	}}}
}

func broken(group, name, caught string) checkItem {
	return subject{group, name}.failed(
		"the check itself broke off: "+execute.CleanText(caught, 200),
		"a fault of setpoint: report it with this line; the other lines stand, and --only leaves this group out",
	)
}

func unended(group, name string, limit time.Duration, err error) checkItem {
	if errors.Is(err, context.Canceled) {
		return subject{group, name}.skipped("interrupted")
	}
	return subject{group, name}.failed(
		fmt.Sprintf("no end within %s", limit),
		fmt.Sprintf("look what hangs (a disk, a name server, a program), then `setpoint doctor --only %s` again", group),
	)
}

// showDoctor writes the report.
func (a *app) showDoctor(r doctorReport, output string) error {
	return a.showReport(r, output, widthOf(a.out))
}

// showReport folds the report to a width, in columns; 0 folds nothing.
func (a *app) showReport(r doctorReport, output string, width int) error {
	if output == formatJSON || output == formatYAML {
		return emit(a.out, output, r)
	}
	t := &table{header: []string{"CHECK", "SUBJECT", "RESULT", "DETAIL"}, coloured: []int{2}}
	if output == formatWide {
		t.header = append(t.header, "TOOK")
	}
	for _, i := range r.Items {
		row := []string{i.Check, i.Subject, i.Result, i.Detail}
		if output == formatWide {
			row = append(row, fmt.Sprintf("%.2fs", i.TookSeconds))
		}
		t.add(row...)
	}
	if output == formatWide || width == 0 {
		if err := t.write(a.out, a.colour); err != nil {
			return err
		}
	} else if err := a.showFolded(t, width); err != nil {
		return err
	}
	if err := a.showRemedies(r.Items, width); err != nil {
		return err
	}
	return a.print("%s\n", r.summary())
}

// showFolded folds the last column of a table.
func (a *app) showFolded(t *table, width int) error {
	var laid bytes.Buffer
	if err := t.write(&laid, false); err != nil {
		return err
	}
	columns := strings.Index(laid.String(), t.header[len(t.header)-1])
	laid.Reset()
	if err := t.write(&laid, a.colour); err != nil {
		return err
	}
	for line := range strings.Lines(laid.String()) {
		if err := a.print("%s\n", foldBehind(strings.TrimSuffix(line, "\n"), columns, width)); err != nil {
			return err
		}
	}
	return nil
}

// showRemedies lists what to do, failures first.
func (a *app) showRemedies(items []checkItem, width int) error {
	n := 0
	for _, result := range []string{resultFail, resultWarn} {
		for _, i := range items {
			if i.Result != result {
				continue
			}
			if n++; n == 1 {
				if err := a.print("\nwhat to do:\n"); err != nil {
					return err
				}
			}
			number := fmt.Sprintf("%2d. ", n)
			line := fmt.Sprintf("%s%s (%s): %s", number, strings.TrimSpace(i.Check+" "+i.Subject), i.Result, i.Remedy)
			line = strings.Map(printable, line)
			if width > 0 {
				line = foldBehind(line, len(number), width)
			}
			if err := a.print("%s\n", line); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return nil
	}
	return a.print("\n")
}

func (r doctorReport) summary() string {
	text := fmt.Sprintf("%d ok, %s, %d failed", r.Counts[resultOK], count(r.Counts[resultWarn], "warning"), r.Counts[resultFail])
	if n := r.Counts[resultSkip]; n > 0 {
		text += fmt.Sprintf(", %d skipped", n)
	}
	return text
}

// firstFault is the text of the first fault, and how many there are.
func firstFault(err error) (text string, n int) {
	var faults spec.Faults
	if errors.As(err, &faults) && len(faults) > 0 {
		return faults[0].Error(), len(faults)
	}
	return strings.TrimSpace(err.Error()), 1
}

// faultsText is e.g. "3 faults, the first: setpoint.yaml:4: …".
func faultsText(err error) string {
	text, n := firstFault(err)
	if n > 1 {
		return fmt.Sprintf("%s, the first: %s", count(n, "fault"), text)
	}
	return text
}

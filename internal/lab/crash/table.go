package crash

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/checker"
)

// Row is what one fault class came to.
type Row struct {
	Class string `json:"class"`
	Says  string `json:"says"`
	// Points were tried; NotReached of them ended before their fault, and
	// Skipped were not tried at all.
	Points     int `json:"points"`
	NotReached int `json:"notReached"`
	Skipped    int `json:"skipped"`
	// Requests reached the actuator in all runs, and Effects changed something.
	Requests      int `json:"requests"`
	Effects       int `json:"effects"`
	DoubleEffects int `json:"doubleEffects"`
	Acknowledged  int `json:"acknowledged"`
	LostEntries   int `json:"lostAcknowledged"`
	// Invariants had at least one instance; Checks is how many instances.
	Invariants int `json:"invariants"`
	Checks     int `json:"checks"`
	// Violations counts runs in which something broke.
	Violations int `json:"violations"`
	// Clicks are those of people, where there were any.
	Clicks Clicks `json:"clicks,omitzero"`
}

// Table is the end of a run of the suite.
type Table struct {
	Rows []Row `json:"rows"`
	// Failed are the runs with violations, in order of their names.
	Failed []Result `json:"failed,omitempty"`
	// Skips are reasons why points were not tried.
	Skips   []string          `json:"skips,omitempty"`
	Checked []checker.Checked `json:"checked"`
	Seconds float64           `json:"seconds"`
	// Mutants were run beside the faults, and MutantsCaught noticed; 0 of 0 when
	// they were not asked for.
	Mutants       int `json:"mutants"`
	MutantsCaught int `json:"mutantsCaught"`
	// Beside are failures of what ran beside the real processes, in words.
	Beside []string `json:"beside,omitempty"`
}

// Clean reports whether nothing broke and every mutant was caught.
func (t Table) Clean() bool {
	return len(t.Failed) == 0 && len(t.Beside) == 0 && t.MutantsCaught == t.Mutants
}

func tabulate(results []Result, took time.Duration) Table {
	t := Table{Seconds: took.Seconds()}
	var total checker.Report
	for _, c := range classes() {
		row := Row{Class: c.name, Says: c.says}
		var sum checker.Report
		for _, r := range results {
			if r.Class != c.name {
				continue
			}
			row.add(r)
			row.Clicks = row.Clicks.add(r.Clicks)
			sum = merge(sum, r.Report)
			if r.Skipped != "" && !slices.Contains(t.Skips, c.name+": "+r.Skipped) {
				t.Skips = append(t.Skips, c.name+": "+r.Skipped)
			}
			if len(r.Violations) > 0 {
				t.Failed = append(t.Failed, r)
			}
		}
		if row.Points == 0 && row.Skipped == 0 {
			continue
		}
		row.take(sum)
		total = merge(total, sum)
		t.Rows = append(t.Rows, row)
	}
	t.Checked = total.Checked
	slices.SortStableFunc(t.Failed, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Name, b.Name))
	})
	return t
}

func (row *Row) add(r Result) {
	if r.Skipped != "" {
		row.Skipped++
		return
	}
	row.Points++
	if !r.Reached {
		row.NotReached++
	}
	if len(r.Violations) > 0 {
		row.Violations++
	}
}

func (row *Row) take(sum checker.Report) {
	row.Requests, row.Effects, row.DoubleEffects = sum.Requests, sum.Effects, sum.DoubleEffects
	row.Acknowledged, row.LostEntries = sum.Acknowledged, sum.LostAcknowledged
	for _, c := range sum.Checked {
		if c.Instances > 0 {
			row.Invariants++
		}
		row.Checks += c.Instances
	}
}

// merge adds a report that may be of a run without one.
func merge(sum, r checker.Report) checker.Report {
	switch {
	case len(r.Checked) == 0:
		return sum
	case len(sum.Checked) == 0:
		return r
	}
	return sum.Add(r)
}

// Write prints the table for people.
func (t Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FAULT CLASS\tPOINTS\tDOUBLE EFFECTS\tLOST ACKNOWLEDGED\tINVARIANTS\tCHECKS\tVIOLATIONS\t")
	for _, r := range t.Rows {
		points := fmt.Sprint(r.Points)
		if r.NotReached > 0 {
			points += fmt.Sprintf(" (%d not reached)", r.NotReached)
		}
		if r.Skipped > 0 {
			points += fmt.Sprintf(" (%d skipped)", r.Skipped)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d of %d\t%d of %d\t%d\t%d\t%d\t\n", r.Says, points, r.DoubleEffects, r.Effects, r.LostEntries, r.Acknowledged, r.Invariants, r.Checks, r.Violations)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range t.Rows {
		r.Clicks.write(w)
	}
	for _, s := range t.Skips {
		fmt.Fprintf(w, "skipped: %s\n", s)
	}
	for _, f := range t.Failed {
		fmt.Fprintf(w, "\nFAILED %s/%s\n", f.Class, f.Name)
		for _, v := range f.Violations {
			fmt.Fprintf(w, "  %s\n", v)
		}
		fmt.Fprintf(w, "  history: %s\n  again:   %s\n", f.History, f.Replay)
	}
	for _, b := range t.Beside {
		fmt.Fprintf(w, "\nFAILED %s\n", b)
	}
	if t.Mutants > 0 {
		fmt.Fprintf(w, "\nmutants caught: %d of %d (`make mutants` runs each alone and prints by what)\n", t.MutantsCaught, t.Mutants)
	}
	_, err := fmt.Fprintf(w, "\n%d points with real processes; %s in all\n", t.points(), (time.Duration(t.Seconds) * time.Second).String())
	return err
}

func (t Table) points() int {
	n := 0
	for _, r := range t.Rows {
		if slices.ContainsFunc(classes(), func(c class) bool { return c.name == r.Class }) {
			n += r.Points
		}
	}
	return n
}

// WriteJSON prints the table for programs.
func (t Table) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Table
	}{"setpoint.dev/v1alpha1", "CrashTable", t})
}

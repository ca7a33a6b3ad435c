package mutants

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Table is what became of a list.
type Table struct {
	Items    []Result `json:"items"`
	Caught   int      `json:"caught"`
	Survived int      `json:"survived"`
	// Faulty are stale or broken: they prove nothing until they are mended.
	Faulty  int     `json:"faulty"`
	Seconds float64 `json:"seconds"`
}

func (t *Table) count(took time.Duration) {
	for _, r := range t.Items {
		switch r.Verdict {
		case Caught:
			t.Caught++
		case Survived:
			t.Survived++
		default:
			t.Faulty++
		}
	}
	t.Seconds = took.Seconds()
}

// Write prints the table for people.
func (t Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tBREAKS\tCAUGHT BY\tTIME\t")
	for _, r := range t.Items {
		by := r.Package + " " + r.Test
		if r.Verdict != Caught {
			by = string(r.Verdict)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.1fs\t\n", r.Name, r.Breaks, by, r.Seconds)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range t.Items {
		if r.Why != "" {
			fmt.Fprintf(w, "\n%s %s: %s\n", r.Verdict, r.Name, r.Why)
		}
	}
	_, err := fmt.Fprintf(w, "\n%d mutants: %d caught, %d survived, %d faulty; %s\n", len(t.Items), t.Caught, t.Survived, t.Faulty,
		(time.Duration(t.Seconds * float64(time.Second))).Round(time.Second))
	return err
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
	}{"setpoint.dev/v1alpha1", "MutantTable", t})
}

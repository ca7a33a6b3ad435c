package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// The output formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

// outputFlag adds -o with the formats that a command knows, the default first.
func outputFlag(cmd *cobra.Command, into *string, formats ...string) {
	cmd.Flags().StringVarP(into, "output", "o", formats[0], "output format: "+strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, *into) {
			return usageError(cmd, "unknown output format %q, want %s", *into, strings.Join(formats, ", "))
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
}

// table is aligned text for people.
type table struct {
	header []string
	rows   [][]string
	// coloured are the columns whose words have a colour.
	coloured []int
	// hints say what can be done about the rows, for people.
	hints []string
}

func (t *table) hint(format string, args ...any) {
	t.hints = append(t.hints, fmt.Sprintf(format, args...))
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write lays the table out. A coloured column has a code of the same length in
// each row, so that alignment holds.
func (t *table) write(w io.Writer, colour bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, row := range append([][]string{t.header}, t.rows...) {
		cells := make([]string, len(row))
		for j, c := range row {
			c = strings.Map(printable, c)
			if c == "" {
				c = "-"
			}
			if colour && slices.Contains(t.coloured, j) {
				c = paint(c, i > 0)
			}
			cells[j] = c
		}
		if _, err := fmt.Fprintln(tw, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// printable keeps what others wrote (a model, an actuator, a document) from
// moving the cursor or breaking the table.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
		return ' '
	}
	return r
}

const (
	red    = 31
	green  = 32
	yellow = 33
	plain  = 39
)

func paint(word string, body bool) string {
	code := plain
	if body {
		switch word {
		case "breached", "deny", "denied", "worsened", "in-doubt", "open", resultFail:
			code = red
		case "met", "auto", "approved", "executed", "recovered", "improved", resultOK:
			code = green
		case "unknown", "approval", "escalate", "pending", "hold", "frozen", resultWarn:
			code = yellow
		}
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, word)
}

// emit writes a value as JSON or YAML.
func emit(w io.Writer, format string, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	if format == formatYAML {
		return emitYAML(w, buf.Bytes())
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// emitYAML keeps the order of the JSON fields.
func emitYAML(w io.Writer, jsonText []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(jsonText, &doc); err != nil {
		return err
	}
	block(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return err
	}
	return enc.Close()
}

func block(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}

// age is a duration as tables show it: one unit, or two when short.
func age(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func secondsAge(s *float64) string {
	if s == nil {
		return "-"
	}
	return age(time.Duration(*s * float64(time.Second)))
}

func timeAge(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return age(now.Sub(*t))
}

// left is the time until something, e.g. "in 4m".
func left(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return "-"
	case !t.After(now):
		return "passed"
	}
	return "in " + age(t.Sub(now))
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// percent shows a ratio with the digits that matter.
func percent(r *float64) string {
	if r == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.4g%%", *r*100)
}

func decimal(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *f)
}

func words(ws []string) string { return strings.Join(ws, ",") }

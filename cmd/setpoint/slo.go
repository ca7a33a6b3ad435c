package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
	"github.com/setpoint-dev/setpoint/internal/spec/pyrra"
	"github.com/setpoint-dev/setpoint/internal/spec/sloth"
)

// readers are the formats of SLOs that are read. Sloth's own files do not state
// the SLO's period; zero is Sloth's default.
func readers(period time.Duration) []spec.Reader {
	return []spec.Reader{
		openslo.Reader{}, sloth.File{Window: period}, sloth.Resource{Window: period}, pyrra.Reader{},
	}
}

func (a *app) sloCommand() *cobra.Command {
	cmd := group("slo", "Work with SLO documents of several formats", a.sloConvertCommand(), a.sloRulesCommand())
	cmd.Long = `Setpoint reads the SLOs that a team has in git as they are: OpenSLO v1, Sloth
(version: prometheus/v1, and PrometheusServiceLevel) and Pyrra
(ServiceLevelObjective). Put them beside your Remediations in documents; nothing
has to be converted for that.`
	cmd.Example = `  setpoint validate sloth/checkout.yaml           # every fault, with file and line
  setpoint slo convert sloth/ pyrra/ -o slo.yaml  # the same SLOs as OpenSLO v1
  setpoint slo rules -o rules.yaml              # counts that make long windows cheap`
	return cmd
}

func (a *app) sloConvertCommand() *cobra.Command {
	var output, period string
	cmd := &cobra.Command{
		Use:   "convert path...",
		Short: "Write SLOs of Sloth and Pyrra as OpenSLO v1",
		Long: `Write the SLOs of files, folders and globs as OpenSLO v1 documents, each with a
comment that says where it came from. A converted SLO gives the same numbers as
its original: the queries are the ones that are asked for the original, and a
grouping stands in them as by (…). Documents that are OpenSLO v1 already are
passed on as they are.

What is not carried is said on standard error: alerting, plugin chains, and
documents that are no SLO. Nothing is written while a document has a fault.`,
		Example: `  setpoint slo convert sloth/checkout.yaml
  setpoint slo convert sloth/ --period 28d -o slo/converted.yaml
  setpoint slo convert 'pyrra/*.yaml' > slo/pyrra.yaml && setpoint validate slo/pyrra.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, "want at least one file, folder or glob")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			window, err := spec.ParseDuration(period)
			if err != nil || window <= 0 {
				return usageError(cmd, "--period wants a duration such as 28d, got %q", period)
			}
			return a.convert(args, output, window)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file, which must not be there yet, instead of standard output")
	cmd.Flags().StringVar(&period, "period", spec.FormatDuration(sloth.DefaultWindow),
		"the SLO period of Sloth's documents, which do not state it")
	return cmd
}

func (a *app) convert(paths []string, output string, period time.Duration) error {
	files, err := readDocuments(paths)
	if err != nil {
		return err
	}
	readings, err := spec.Read(files, readers(period))
	if err != nil {
		return err
	}
	if err := distinct(readings); err != nil {
		return err
	}
	parts, err := converted(files, readings)
	if err != nil {
		return err
	}
	text, err := joined(parts)
	if err != nil {
		return err
	}
	if output == "" {
		a.remarkConverted(files, readings)
		return a.print("%s", text)
	}
	if err := writeConverted(output, text); err != nil {
		return err
	}
	a.remarkConverted(files, readings)
	a.say("setpoint: wrote %s to %s", count(len(parts), "document"), output)
	return nil
}

// part is one OpenSLO document, with the place of what it came from.
type part struct {
	pos  spec.Position
	text []byte
}

// converted are the documents in the order of files and lines.
func converted(files []spec.File, readings []spec.Reading) ([]part, error) {
	var parts []part
	for _, f := range files {
		docs, _ := spec.Documents(f) // Read without a fault just now.
		for _, d := range docs {
			if d.APIVersion != openslo.APIVersion {
				continue
			}
			text, _, err := d.Root().YAML()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Pos, err)
			}
			parts = append(parts, part{d.Pos, append([]byte("# "+convertedFrom(d.Pos, openslo.APIVersion)+"\n"), text...)})
		}
	}
	for _, r := range readings {
		if r.APIVersion == openslo.APIVersion {
			continue
		}
		for _, o := range r.Objectives {
			text, err := openslo.Write(convertedFrom(o.Objective.Pos, r.APIVersion), o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Objective.Pos, err)
			}
			parts = append(parts, part{o.Objective.Pos, text})
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("there is no SLO in these files, so nothing to convert")
	}
	slices.SortStableFunc(parts, func(x, y part) int { return byPlace(x.pos, y.pos) })
	return parts, nil
}

// convertedFrom is the comment above a document.
func convertedFrom(pos spec.Position, format string) string {
	return fmt.Sprintf("From %s (%s).", pos, format)
}

// distinct refuses an SLO that stands in two documents, perhaps of two formats.
func distinct(readings []spec.Reading) error {
	first := map[string]spec.Position{}
	var faults spec.Faults
	for _, r := range readings {
		for _, o := range r.Objectives {
			key := o.Service + "/" + o.Objective.ID
			if at, dup := first[key]; dup {
				faults = append(faults, spec.Fault{Pos: o.Objective.Pos, Text: fmt.Sprintf(
					"objective %q of service %q is in %s already: convert one of them", o.Objective.ID, o.Service, at)})
				continue
			}
			first[key] = o.Objective.Pos
		}
	}
	return faults.Err()
}

// joined is one file of all documents, which must be one that can be loaded.
func joined(parts []part) ([]byte, error) {
	var text bytes.Buffer
	check := make([]spec.File, len(parts))
	for i, p := range parts {
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(p.text)
		check[i] = spec.File{Name: "OpenSLO from " + p.pos.String(), Data: p.text}
	}
	if _, err := spec.Read(check, []spec.Reader{openslo.Reader{}}); err != nil {
		return nil, fmt.Errorf("a converted document would not load, so nothing is written:\n%w", err)
	}
	if _, faults := spec.Documents(spec.File{Name: "the converted file", Data: text.Bytes()}); len(faults) > 0 {
		return nil, fmt.Errorf("convert fewer files at once:\n%w", faults)
	}
	return text.Bytes(), nil
}

// remarkConverted says what the converted documents do not hold.
func (a *app) remarkConverted(files []spec.File, readings []spec.Reading) {
	var notes []spec.Note
	for _, r := range readings {
		if r.APIVersion != openslo.APIVersion { // Those are passed on as they are.
			notes = append(notes, r.Notes...)
		}
	}
	for _, f := range files {
		docs, _ := spec.Documents(f)
		for _, d := range docs {
			if d.APIVersion == spec.Group {
				notes = append(notes, spec.Note{Pos: d.Pos, Text: fmt.Sprintf("%s %q is not an SLO and is not carried: keep its document", d.Kind, d.Name)})
			}
		}
	}
	slices.SortStableFunc(notes, func(x, y spec.Note) int { return byPlace(x.Pos, y.Pos) })
	for _, n := range notes {
		a.say("%s: note: %s", n.Pos, n.Text)
	}
}

func byPlace(x, y spec.Position) int {
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
}

// writeConverted overwrites nothing: the file may be somebody's SLOs.
func writeConverted(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and is not overwritten: name another file, or remove it", path)
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--output %s: %w", path, err)
	}
	return nil
}

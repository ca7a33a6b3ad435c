package main

import (
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// policyCheck is the answer of `policy check -o json`.
type policyCheck struct {
	web.Meta
	// Bundle is what was checked: the folder, or "built-in policy".
	Bundle string `json:"bundle"`
	// Loads: no finding is an error. Valid: none is a lint either.
	Loads    bool           `json:"loads"`
	Valid    bool           `json:"valid"`
	Findings []rego.Finding `json:"findings"`
}

const policyCheckLong = `Compile a policy strictly against the schema of the gate's input, and look for
what loads and is a mistake all the same. One line a finding: file, line, text and
a code. Exit 1 when one is an error (the policy does not load) or a lint (it
loads, and should not be merged); a warning is shown, and fails nothing.

  metadata   a rule of the four sets lacks title, description or custom.remedy
  absence    a grant (auto, approval) could hold because something is absent or
             unknown: not over what may be missing, a set that is empty, a default,
             "unknown" above a number. Ask for what must be there; or say in
             METADATA custom.absence of the grant, or of its helper, why it is safe
  never      a comparison that never holds: a misspelt word, text against a number
  untested   no test, in Rego or in a table of --cases, reaches a grant

Besides these there are the errors of loading: compile, input-reference, data,
package, rule, reason, read.`

func (a *app) policyCheckCommand() *cobra.Command {
	var output string
	var cases []string
	cmd := &cobra.Command{
		Use:   "check [folder]",
		Short: "Compile a policy strictly and look for mistakes, one line a finding",
		Long:  policyCheckLong,
		Example: `  setpoint policy check
  setpoint policy check policies/ --cases cases.yaml
  setpoint policy check policies/ -o json`,
		Args: optionalFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			tables, err := readTables(cases)
			if err != nil {
				return err
			}
			fsys, name, err := a.bundleOf(args)
			if err != nil {
				return err
			}
			return a.policyCheck(regolint.Check(cmd.Context(), fsys, regolint.Options{Tables: tables}), name, output)
		},
	}
	cmd.Flags().StringArrayVar(&cases, "cases", nil, "a table of cases that counts as tests too (repeatable)")
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) policyCheck(findings rego.Findings, name, output string) error {
	c := policyCheck{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "PolicyCheck"}, Bundle: bundleName(name),
		Loads: len(findings.Errors()) == 0, Valid: len(findings.Failing()) == 0, Findings: []rego.Finding{},
	}
	for _, f := range findings {
		if f.File != "" {
			f.File = path.Join(name, f.File)
		}
		c.Findings = append(c.Findings, f)
	}
	if output != formatTable {
		if err := emit(a.out, output, c); err != nil {
			return err
		}
	} else if err := a.showFindings(c); err != nil {
		return err
	}
	if !c.Valid {
		return exitCode(exitError)
	}
	return nil
}

// showFindings writes what fails the check to standard error, as every fault.
func (a *app) showFindings(c policyCheck) error {
	if err := a.print("checking %s\n", c.Bundle); err != nil {
		return err
	}
	failing := 0
	for _, f := range c.Findings {
		text := strings.Map(printable, f.String())
		if f.Severity == rego.SeverityWarning {
			a.say("warning: %s", text)
			continue
		}
		failing++
		a.say("%s", text)
	}
	switch {
	case !c.Loads:
		a.say("setpoint: %s; the policy does not load", count(failing, "fault"))
	case !c.Valid:
		a.say("setpoint: %s; the policy loads, and should not be merged", count(failing, "finding"))
	default:
		return a.print("the policy loads and passes the check\n")
	}
	return nil
}

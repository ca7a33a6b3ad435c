package main

import (
	"path"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// policyCheck is the answer of `policy check -o json`.
type policyCheck struct {
	web.Meta
	// Bundle is what was checked: the folder, or "built-in policy".
	Bundle   string         `json:"bundle"`
	Valid    bool           `json:"valid"`
	Findings []rego.Finding `json:"findings"`
}

func (a *app) policyCheckCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check [folder]",
		Short: "Compile a policy strictly against the gate's input, one line a finding",
		Example: `  setpoint policy check
  setpoint policy check policies/ -o json`,
		Args: optionalFolder,
		RunE: func(_ *cobra.Command, args []string) error {
			fsys, name, err := a.bundleOf(args)
			if err != nil {
				return err
			}
			return a.policyCheck(rego.Check(fsys), name, output)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) policyCheck(findings []rego.Finding, name, output string) error {
	c := policyCheck{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "PolicyCheck"}, Bundle: bundleName(name),
		Valid: true, Findings: []rego.Finding{},
	}
	for _, f := range findings {
		if f.File != "" {
			f.File = path.Join(name, f.File)
		}
		c.Valid = c.Valid && f.Severity == rego.SeverityWarning
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

// showFindings writes faults to standard error, as every fault.
func (a *app) showFindings(c policyCheck) error {
	if err := a.print("checking %s\n", c.Bundle); err != nil {
		return err
	}
	faults := 0
	for _, f := range c.Findings {
		if f.Severity == rego.SeverityWarning {
			a.say("warning: %s", f)
			continue
		}
		faults++
		a.say("%s", f)
	}
	if faults > 0 {
		a.say("setpoint: %s; the policy does not load", count(faults, "fault"))
		return nil
	}
	return a.print("the policy loads\n")
}

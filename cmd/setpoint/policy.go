package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
	"github.com/setpoint-dev/setpoint/policies"
)

// bundle is the configured policy folder, or the built-in one.
func (s site) bundle() (fsys fs.FS, name string, err error) {
	return bundleAt(s.cfg.Policies.Path)
}

func bundleAt(path string) (fsys fs.FS, name string, err error) {
	if path == "" {
		return policies.FS, "", nil
	}
	opened, err := openFolder(path, rego.MaxBundle)
	if err != nil {
		return nil, "", fmt.Errorf("policy: %w: name the root of the bundle", err)
	}
	return opened, path, nil
}

// policy loads the bundle as a whole. It reaches the loop only when its own
// tests pass.
func (s site) policy(ctx context.Context) (*rego.Policy, error) {
	p, err := s.compiled(ctx)
	if err != nil {
		return nil, err
	}
	report, err := p.RunTests(ctx)
	switch {
	case err != nil:
		return nil, err
	case report.Failed > 0:
		f := report.Failures[0]
		return nil, fmt.Errorf("%s of the policy failed, first %s at %s:%d (`setpoint policy test` shows all)",
			count(report.Failed, "test"), f.Name, f.File, f.Line)
	}
	return p, nil
}

// compiled loads the bundle without running its tests, to look at a decision.
func (s site) compiled(context.Context) (*rego.Policy, error) {
	fsys, _, err := s.bundle()
	if err != nil {
		return nil, err
	}
	return rego.Load(fsys, rego.Options{})
}

func (a *app) policyCommand() *cobra.Command {
	return group("policy", "The Rego that grants and refuses", a.policyTestCommand(), a.policyCheckCommand())
}

// bundleOf is the folder of the argument, else the configured bundle, else the
// built-in one.
func (a *app) bundleOf(args []string) (fs.FS, string, error) {
	if len(args) > 0 {
		return bundleAt(args[0])
	}
	s, err := a.site()
	if err != nil && !errors.Is(err, errNoConfig) {
		return nil, "", err
	}
	if s.cfg.Policies.Path == "" {
		a.overlooked()
	}
	return s.bundle()
}

// overlooked tells of a folder that looks like the bundle and is none: who
// tests the built-in policy must not believe that it was their own.
func (a *app) overlooked() {
	dir := filepath.Join(filepath.Dir(a.configFile()), "policies")
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		a.say("setpoint: the folder %s was not looked at: name it as the argument, or as policies.path in %s", dir, a.configFile())
	}
}

// bundleName is a bundle for people.
func bundleName(path string) string {
	if path == "" {
		return "built-in policy"
	}
	return path
}

func optionalFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(cmd, "want one bundle folder at most, got %s", count(len(args), "argument"))
	}
	return nil
}

// policyTests is the answer of `policy test -o json`.
type policyTests struct {
	web.Meta
	// Bundle is what was tested: the folder, or "built-in policy".
	Bundle string `json:"bundle"`
	rego.Report
}

func (a *app) policyTestCommand() *cobra.Command {
	var output string
	var coverage bool
	cmd := &cobra.Command{
		Use:   "test [folder]",
		Short: "Run a policy's own tests with the engine that decides; exit 2 when one fails",
		Example: `  setpoint policy test
  setpoint policy test policies/ --coverage
  setpoint policy test -o json`,
		Args: optionalFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			fsys, name, err := a.bundleOf(args)
			if err != nil {
				return err
			}
			report, err := rego.RunTests(cmd.Context(), fsys)
			if err != nil {
				return err
			}
			if output == formatTable {
				err = a.showTests(report, name, coverage)
			} else {
				err = emit(a.out, output, policyTests{web.Meta{APIVersion: spec.Group, Kind: "PolicyTests"}, bundleName(name), report})
			}
			switch {
			case err != nil:
				return err
			case report.Failed > 0:
				return exitCode(exitFound)
			case report.Passed == 0:
				return errors.New("the bundle has no test: put rules named test_… into a file named …_test.rego")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&coverage, "coverage", false, "also show the lines that no test reaches")
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) showTests(r rego.Report, name string, coverage bool) error {
	if err := a.print("testing %s\n", bundleName(name)); err != nil {
		return err
	}
	for _, f := range r.Failures {
		if err := a.print("%s:%d: FAIL %s %s\n", path.Join(name, f.File), f.Line, f.Name, f.Text); err != nil {
			return err
		}
	}
	if coverage {
		for _, l := range r.Uncovered {
			if err := a.print("%s:%d-%d: not reached by a test\n", path.Join(name, l.File), l.First, l.Last); err != nil {
				return err
			}
		}
	}
	return a.print("%d passed, %d failed, %d skipped, %.1f%% of rule lines reached, revision %s\n",
		r.Passed, r.Failed, r.Skipped, r.Coverage, short(r.Revision))
}

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
		c.Valid = c.Valid && f.Warning
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
		if f.Warning {
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

package main

import (
	"errors"
	"path"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// policyTests is the answer of `policy test -o json`.
type policyTests struct {
	web.Meta
	// Bundle is what was tested: the folder, or "built-in policy".
	Bundle string `json:"bundle"`
	regotest.Report
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
			bundle, err := rego.Read(fsys)
			if err != nil {
				return err
			}
			report, err := regotest.Run(cmd.Context(), bundle, regotest.Options{})
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

func (a *app) showTests(r regotest.Report, name string, coverage bool) error {
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

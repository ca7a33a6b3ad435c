package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// formatJUnit is XML for a CI system.
const formatJUnit = "junit"

// policyTests is the answer of `policy test -o json`.
type policyTests struct {
	web.Meta
	// Bundle is what was tested: the folder, or "built-in policy".
	Bundle string `json:"bundle"`
	regotest.Report
}

// testFlags are the flags of `policy test`, named as those of `opa test`.
type testFlags struct {
	run, timeout, explain, output string
	verbose, coverage, varValues  bool
	threshold                     float64
	cases                         []string
}

const policyTestLong = `Run a policy's own tests with the engine, the functions and the strictness of a
decision: rules named test_… in files named …_test.rego, and tables of cases.
Exit 2 when one fails, 1 when they cannot be run or there is none.

A table is for people who would rather not write Rego:

  base: input.json            # beside the table, or an object; without it, what
                              # ` + "`setpoint policy schema --example`" + ` prints
  cases:
    - name: a restart at night asks a person
      changes:
        now: "2026-11-29T03:00:00Z"
        proposal: {action: restart}
        action: {name: restart}
      expect: {verdict: approval, reasons: [after-hours]}

Changes go into the base: objects by key, lists and scalars as a whole. A case
may have a base of its own. The verdict is the one of policy alone, before any
floor: auto, approval, escalate or deny. The reasons are those of the rules that
made it, all of them, in any order and without "policy:"; without reasons only
the verdict counts, and reasons: [] wants that no rule fired.`

func (a *app) policyTestCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [folder]",
		Short: "Run a policy's own tests with the engine that decides; exit 2 when one fails",
		Long:  policyTestLong,
		Example: `  setpoint policy test
  setpoint policy test policies/ --coverage --threshold 95
  setpoint policy test policies/ --run night -v --var-values
  setpoint policy test policies/ --cases cases.yaml -o junit > report.xml`,
		Args: optionalFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := a.testOptions(cmd, f)
			if err != nil {
				return err
			}
			fsys, name, err := a.bundleOf(args)
			if err != nil {
				return err
			}
			bundle, err := rego.Read(fsys)
			if err != nil {
				return err
			}
			o.Folder = name
			report, err := regotest.Run(cmd.Context(), bundle, o)
			if err != nil {
				return err
			}
			if err := a.reportTests(report, name, f); err != nil {
				return err
			}
			return a.testsEnd(report, f)
		},
	}
	testFlagsOf(cmd, &f)
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatYAML, formatJUnit)
	return cmd
}

func testFlagsOf(cmd *cobra.Command, f *testFlags) {
	flags := cmd.Flags()
	flags.StringVarP(&f.run, "run", "r", "", "run only tests whose name (data.<package>.<rule>, or of a case) the regular expression matches")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show each test with its time, and what kept rules from firing in one that failed")
	flags.BoolVarP(&f.coverage, "coverage", "c", false, "also show the lines that no test reaches")
	flags.Float64Var(&f.threshold, "threshold", 0, "exit 2 when the coverage is below this percentage")
	flags.StringVar(&f.timeout, "timeout", "5s", "the time that one test in Rego may take")
	flags.BoolVar(&f.varValues, "var-values", false, "show the values of variables in the expression that failed")
	flags.StringVar(&f.explain, "explain", "", "trace each failing test: fails|full (with --verbose)")
	flags.StringArrayVar(&f.cases, "cases", nil, "a table of cases to run too (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions([]string{"fails", "full"}, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

// testOptions reads the flags and the tables.
func (a *app) testOptions(cmd *cobra.Command, f testFlags) (regotest.Options, error) {
	o := regotest.Options{Detail: true, Values: f.varValues, Trace: regotest.Trace(f.explain)}
	if f.explain != "" && o.Trace != regotest.TraceFails && o.Trace != regotest.TraceFull {
		return o, usageError(cmd, "--explain wants fails or full, not %q", f.explain)
	}
	if f.threshold < 0 || f.threshold > 100 {
		return o, usageError(cmd, "--threshold wants a percentage from 0 to 100, not %v", f.threshold)
	}
	timeout, err := spec.ParseDuration(f.timeout)
	if err != nil || timeout <= 0 {
		return o, usageError(cmd, "--timeout wants a duration above zero such as 5s, not %q", f.timeout)
	}
	o.Timeout = timeout
	if f.run != "" {
		if o.Run, err = regexp.Compile(f.run); err != nil {
			return o, usageError(cmd, "--run: %v", err)
		}
	}
	o.Tables, err = readTables(f.cases)
	return o, err
}

// readTables reads all tables, so that one run tells of every fault.
func readTables(names []string) ([]regotest.Table, error) {
	var tables []regotest.Table
	var faults spec.Faults
	for _, name := range names {
		data, err := readRegular(name)
		if err != nil {
			return nil, fmt.Errorf("--cases: %w", err)
		}
		t, err := regotest.ReadTable(spec.File{Name: name, Data: data}, readRegular)
		var wrong spec.Faults
		switch {
		case errors.As(err, &wrong):
			faults = append(faults, wrong...)
		case err != nil:
			return nil, fmt.Errorf("--cases %s: %w", name, err)
		}
		tables = append(tables, t)
	}
	return tables, faults.Err()
}

func (a *app) reportTests(r regotest.Report, name string, f testFlags) error {
	switch f.output {
	case formatTable:
		return a.showTests(r, name, f)
	case formatJUnit:
		out, err := r.JUnit("setpoint policy test")
		if err != nil {
			return err
		}
		return a.print("%s", out)
	}
	return emit(a.out, f.output, policyTests{web.Meta{APIVersion: spec.Group, Kind: "PolicyTests"}, bundleName(name), r})
}

// testsEnd is the exit code.
func (a *app) testsEnd(r regotest.Report, f testFlags) error {
	switch {
	case r.Failed > 0:
		return exitCode(exitFound)
	case r.Passed == 0 && f.run != "":
		return fmt.Errorf("no test passed that --run %s matches: it looks at data.<package>.<rule> and at the names of cases", f.run)
	case r.Passed == 0:
		return errors.New("the bundle has no test: put rules named test_… into a file named …_test.rego")
	case r.Coverage < f.threshold:
		a.say("setpoint: %.1f%% of rule lines are reached, below the threshold of %v%% (--coverage shows the others)", r.Coverage, f.threshold)
		return exitCode(exitFound)
	}
	return nil
}

func (a *app) showTests(r regotest.Report, name string, f testFlags) error {
	var b strings.Builder
	fmt.Fprintf(&b, "testing %s\n", bundleName(name))
	verbose := f.verbose || f.explain != ""
	for _, t := range r.Tests {
		showTest(&b, t, verbose)
	}
	if f.coverage {
		for _, l := range r.Uncovered {
			lines := strconv.Itoa(l.First)
			if l.Last > l.First {
				lines += "-" + strconv.Itoa(l.Last)
			}
			fmt.Fprintf(&b, "%s:%s: not reached by a test\n", l.File, lines)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped, %.1f%% of rule lines reached, revision %s\n",
		r.Passed, r.Failed, r.Skipped, r.Coverage, short(r.Revision))
	return a.print("%s", b.String())
}

var testWords = map[regotest.Result]string{
	regotest.Passed: "PASS", regotest.Failed: "FAIL", regotest.Errored: "ERROR", regotest.Skipped: "SKIP",
}

// showTest writes one line, and of a test that failed why. What a policy prints
// is its author's, so no part of it moves the cursor.
func showTest(b *strings.Builder, t regotest.Test, verbose bool) {
	if !verbose {
		if t.Result == regotest.Passed || t.Result == regotest.Skipped {
			return
		}
		t.Stopped = nil
	}
	fmt.Fprintf(b, "%s:%d: %s %s", t.File, t.Line, testWords[t.Result], strings.Map(printable, t.Name))
	if t.Text != "" && t.Text != "failed" {
		fmt.Fprintf(b, ": %s", strings.Map(printable, t.Text))
	}
	if verbose && t.Seconds > 0 {
		fmt.Fprintf(b, " (%s)", time.Duration(t.Seconds*float64(time.Second)).Round(time.Microsecond))
	}
	b.WriteByte('\n')
	for _, line := range t.Why() {
		fmt.Fprintf(b, "    %s\n", strings.Map(printableText, line))
	}
	for _, line := range t.Printed() {
		fmt.Fprintf(b, "    printed: %s\n", strings.Map(printable, line))
	}
}

// printableText keeps tabs, with which Rego is indented.
func printableText(r rune) rune {
	if r == '\t' {
		return r
	}
	return printable(r)
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/crash"
)

// exitFound says that the suite ran and something broke.
const exitFound = 2

// found is the error of a suite that found something; the table told what.
type found struct{ error }

// ExitCode is what the process ends with.
func (found) ExitCode() int { return exitFound }

func crashCommand() *cobra.Command {
	var o crash.Options
	var output string
	var all, prove bool
	var lines []string
	for _, c := range crash.Classes() {
		lines = append(lines, fmt.Sprintf("  %-10s %s", c[0], c[1]))
	}
	cmd := &cobra.Command{
		Use:   "crash",
		Short: "Kill, stop and starve real agents at every place where an effect could be lost or repeated",
		Long: `Run a real agent through an episode, once for each place where it can be hit:
kill it there, or stop it, take its disk, turn its clock; let it run on; and hold
its exported ledger against the actuator's own journal. An independent checker
names the invariant that broke. The classes are

` + strings.Join(lines, "\n") + `

The agent must be built with -tags crashtest. A class whose tools are missing
(strace, a mount namespace, PostgreSQL) says so and is skipped. The history of a
run that failed is kept, and the command that tries it again is printed.

With --all the simulation, every order of a small world and the mutants run after
it, and stand in the same table; that needs the sources and the Go toolchain.

Exit 0 when nothing broke, 2 when something did, 1 when the suite could not run.`,
		Example: `  setpoint-lab crash
  setpoint-lab crash --all
  setpoint-lab crash --short --only kill,tear
  setpoint-lab crash --point "kill/auto/ok/kill at after started#1" --keep histories
  setpoint-lab crash -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageError(cmd, "-o: want table or json, not %q", output)
			}
			return runCrash(cmd, o, output, besides{all: all, clicks: prove})
		},
	}
	cmd.Flags().BoolVar(&o.Short, "short", false, "try a sample of every class, under a minute")
	cmd.Flags().BoolVar(&all, "all", false, "also run the simulation, the interleavings and the mutants")
	cmd.Flags().BoolVar(&prove, "prove-clicks", false, "also break the agent in ways that the class click must notice; needs the sources and Go")
	cmd.Flags().StringVar(&o.Agent, "agent", "", "the agent built with -tags crashtest (default: setpoint-crashtest beside this program)")
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "only these classes")
	cmd.Flags().StringVar(&o.Point, "point", "", "one point, by the name that a failure prints")
	cmd.Flags().StringVar(&o.Keep, "keep", "", "keep the history of every run in this folder (default: only of failed ones, in a temporary one)")
	cmd.Flags().IntVar(&o.Parallel, "parallel", 4, "how many runs go on at a time; they mostly wait")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func runCrash(cmd *cobra.Command, o crash.Options, output string, also besides) error {
	if o.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the agent: %w", err)
		}
		o.Agent = filepath.Join(filepath.Dir(self), "setpoint-crashtest")
	}
	var err error
	if o.Agent, err = filepath.Abs(o.Agent); err != nil {
		return fmt.Errorf("--agent: %w", err)
	}
	o.KeepAll = o.Keep != ""
	o.Progress = progress(cmd.ErrOrStderr())
	table, err := crash.Run(cmd.Context(), o)
	if len(table.Rows) == 0 {
		return err
	}
	if err == nil {
		err = also.run(cmd, o, &table)
	}
	write := table.Write
	if output == "json" {
		write = table.WriteJSON
	}
	// What was tried is told even when something could not be cleared away.
	if err := errors.Join(err, write(cmd.OutOrStdout())); err != nil {
		return err
	}
	if !table.Clean() {
		return found{errors.New("the promise was broken; the table names where")}
	}
	return nil
}

// progress writes one line on a terminal, and one line for each run that
// failed everywhere.
func progress(w io.Writer) func(done, all int, r crash.Result) {
	f, _ := w.(*os.File)
	live := f != nil && isTerminal(f)
	return func(done, all int, r crash.Result) {
		if len(r.Violations) > 0 {
			fmt.Fprintf(w, "%sFAILED %s/%s: %s\n", blank(live), r.Class, r.Name, r.Violations[0])
		}
		switch {
		case live:
			fmt.Fprintf(w, "%s%d/%d %s/%s", blank(live), done, all, r.Class, r.Name)
			if done == all {
				fmt.Fprint(w, blank(live))
			}
		case done%50 == 0:
			fmt.Fprintf(w, "%d of %d points tried\n", done, all)
		}
	}
}

// blank empties the line on a terminal.
func blank(live bool) string {
	if live {
		return "\r\x1b[K"
	}
	return ""
}

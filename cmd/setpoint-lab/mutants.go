package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/mutants"
)

func mutantsCommand() *cobra.Command {
	var o mutants.Options
	var only []string
	var list bool
	var output string
	cmd := &cobra.Command{
		Use:   "mutants",
		Short: "Break the product on purpose, one line at a time, and show which test notices",
		Long: `Run the tests that guard each promise on a copy in which that promise is broken.
The sources are not touched: go test reads the changed file from a temporary
folder. A mutant that no test notices is a promise that nothing guards.

It needs the Go toolchain and the sources, and takes about four minutes on two
cores.

Exit 0 when every mutant was caught, 2 when one survived, 1 when one proves
nothing: its text is gone, it does not compile, or its test fails without it.`,
		Example: `  setpoint-lab mutants
  setpoint-lab mutants --only no-fsync,claim-after-send
  setpoint-lab mutants --list
  setpoint-lab mutants -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageError(cmd, "-o: want table or json, not %q", output)
			}
			chosen, err := mutants.Select(mutants.List(), only)
			if err != nil {
				return usageError(cmd, "--only: %v", err)
			}
			if list {
				return listMutants(cmd.OutOrStdout(), chosen)
			}
			return runMutants(cmd, chosen, o, output)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "only the mutants of these names")
	cmd.Flags().BoolVar(&list, "list", false, "show the mutants and what may catch them, and run nothing")
	cmd.Flags().StringVar(&o.Root, "root", "", "the folder of the sources (default: the module that the working directory is in)")
	cmd.Flags().IntVar(&o.Parallel, "parallel", 2, "how many run at a time")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func listMutants(w io.Writer, list []mutants.Mutant) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "MUTANT\tBREAKS\tMAY BE CAUGHT BY\t")
	for _, m := range list {
		name, breaks := m.Name, m.Breaks
		for _, c := range m.Catchers {
			fmt.Fprintf(tw, "%s\t%s\t%s\t\n", name, breaks, c)
			name, breaks = "", ""
		}
	}
	return tw.Flush()
}

func runMutants(cmd *cobra.Command, list []mutants.Mutant, o mutants.Options, output string) error {
	if o.Root == "" {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		o.Root = root
	}
	o.Progress = mutantProgress(cmd.ErrOrStderr())
	table, err := mutants.Run(cmd.Context(), list, o)
	if err != nil {
		return err
	}
	write := table.Write
	if output == "json" {
		write = table.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	switch {
	case table.Survived > 0:
		return found{fmt.Errorf("%d mutants survived: what they break is guarded by no test", table.Survived)}
	case table.Faulty > 0:
		return fmt.Errorf("%d mutants prove nothing; the table says why", table.Faulty)
	}
	return nil
}

func mutantProgress(w io.Writer) func(done, all int, r mutants.Result) {
	return func(done, all int, r mutants.Result) {
		what := string(r.Verdict)
		if r.Verdict == mutants.Caught {
			what += " by " + r.Test
		}
		fmt.Fprintf(w, "%d of %d: %s %s\n", done, all, r.Name, what)
	}
}

// moduleRoot is the folder with the go.mod that the working directory is in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above; run it inside the sources, or say --root")
		}
		dir = up
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/worst"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func worstCommand() *cobra.Command {
	var output string
	var days int
	cmd := &cobra.Command{
		Use:   "worst",
		Short: "Play the most harmful proposers against the loop, and hold the harm against its bound",
		Long: `Play the agent's loop in simulated time, in mode auto, with a policy that allows
everything, against proposers that do as much harm as they can, under several
configurations. What is counted is what the actuator did and what became of the
services in truth, not what the ledger says. The bound beside it follows from
configuration alone: capacity, costs, the demotion rule and the caps.

Exit code 0: no adversary did more harm than the bound, and the worst one did as
much; 1: the arithmetic is wrong, in one way or the other.`,
		Example: `  setpoint-lab worst
  setpoint-lab worst --days 6 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case output != "table" && output != "json":
				return usageError(cmd, "-o %s: unknown output, want table or json", output)
			case days < 1 || days > worst.Days:
				return usageError(cmd, "--days %d: want 1 to %d, which is one period of every budget", days, worst.Days)
			}
			// Heaps are small and short-lived: collecting them often takes a quarter of the time.
			debug.SetGCPercent(400)
			var reports []worst.Report
			for _, s := range worst.Setups() {
				said := func(adversary string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s was played\n", s.Name, adversary) }
				r, err := worst.Try(cmd.Context(), s, days, s.Adversaries(), said)
				if err != nil {
					return err
				}
				reports = append(reports, r)
			}
			if err := printWorst(cmd.OutOrStdout(), output, reports); err != nil {
				return err
			}
			return worstVerdict(reports)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.Flags().IntVar(&days, "days", worst.Days, "how many days to play")
	return cmd
}

func printWorst(out io.Writer, output string, reports []worst.Report) error {
	if output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Items      []worst.Report `json:"items"`
		}{spec.Group, "WorstCaseList", reports})
	}
	for _, r := range reports {
		fmt.Fprintf(out, "%s: %s\n\n", r.Setup, r.Config)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ADVERSARY\tEFFECTS\tHARMFUL\tON ONE SERVICE\tBY ONE ACTION\tWHAT IT DOES")
		for _, row := range r.Rows {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", row.Adversary, row.Effects, row.Harmful.Found, row.Service.Found, row.Action.Found, row.Does)
		}
		w.Flush()
		fmt.Fprintf(out, "\nharmful effects in %d days, at most: %s overall, %s on a service, %s by an action\n\n",
			r.Days, against(r.Overall), against(r.Service), against(r.Action))
	}
	return nil
}

// against is a greatest number beside its bound.
func against(c worst.Count) string {
	switch {
	case c.Exceeded():
		return fmt.Sprintf("%d, more than the bound of %d (%s)", c.Found, c.Bound, c.By)
	case c.Found < c.Bound:
		return fmt.Sprintf("%d, the bound of %d (%s) was not reached", c.Found, c.Bound, c.By)
	}
	return fmt.Sprintf("%d = the bound (%s)", c.Found, c.By)
}

func worstVerdict(reports []worst.Report) error {
	var errs []error
	for _, r := range reports {
		switch {
		case r.Exceeded():
			errs = append(errs, fmt.Errorf("worst: %s: more harm was done than the bound allows", r.Setup))
		case !r.Reached():
			errs = append(errs, fmt.Errorf("worst: %s: no adversary reached the bound in %d days", r.Setup, r.Days))
		}
	}
	return errors.Join(errs...)
}

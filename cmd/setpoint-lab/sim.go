package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/sim"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// simFlags are those of sim.
type simFlags struct {
	seeds, steps int
	seed         uint64
	first        uint64
	parallel     int
	verbose      bool
	output       string
	one          bool
}

func simCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play the pass in a made-up world, thousands of times, and check what must never happen",
		Long: `Play seeds of a made-up world in one goroutine each: replicas that crash, stop and
have wrong clocks, a store that fails, a network that loses and repeats, an
actuator with its own journal, people who answer twice, a proposer that means
harm. Ledger, gate, step, budget and tickets are the product's own code. After
each step the entries, the sends and the journal are held against the
invariants; at the end of a seed everything is settled or with a person.

The table says how often each interesting state was reached. A state that no
seed reached fails the run: a green run without it means little.

Exit code 2: an invariant broke, or a state was never reached. A broken seed is
printed with the command that plays it again.`,
		Example: `  setpoint-lab sim
  setpoint-lab sim --seeds 100000 -o json
  setpoint-lab sim --seed 4711 -v`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.one = cmd.Flags().Changed("seed")
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&f.seeds, "seeds", 10000, "how many seeds to play")
	cmd.Flags().IntVar(&f.steps, "steps", 200, "how many steps a seed has before its faults stop")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "play this seed alone; states need not be reached then")
	cmd.Flags().Uint64Var(&f.first, "first", 1, "the first seed")
	cmd.Flags().IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many seeds are played at once")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print a line for every step; needs --seed")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table or json")
	return cmd
}

func (f simFlags) check() error {
	switch {
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("-o %s: unknown output, want table or json", f.output)
	case f.seeds < 1 || f.steps < 1 || f.parallel < 1:
		return fmt.Errorf("--seeds, --steps and --parallel: want at least 1 each")
	case f.verbose && !f.one:
		return fmt.Errorf("-v: prints one seed, name it with --seed")
	}
	return nil
}

func (f simFlags) options(out, progress io.Writer) sim.Options {
	o := sim.Options{Seeds: f.seeds, FirstSeed: f.first, Steps: f.steps, Parallel: f.parallel}
	if f.one {
		o.Seeds, o.FirstSeed, o.Parallel = 1, f.seed, 1
	}
	if f.verbose {
		o.Trace = out
	}
	o.Progress = func(done int) {
		if done%1000 == 0 {
			fmt.Fprintf(progress, "%d of %d seeds\n", done, o.Seeds)
		}
	}
	return o
}

func (f simFlags) run(ctx context.Context, out, progress io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	began := time.Now()
	r, err := sim.Run(ctx, f.options(out, progress))
	if err != nil {
		return err
	}
	if f.one {
		r.Unreached = []string{}
	}
	if f.output == "json" {
		if err := printSimJSON(out, r, f.steps); err != nil {
			return err
		}
	} else {
		printSim(out, r)
	}
	fmt.Fprintf(progress, "%d seeds, %d steps in %s\n", r.Seeds, r.Steps, time.Since(began).Round(10*time.Millisecond))
	if r.OK() {
		return nil
	}
	return failed(simFailure(r, f.steps))
}

// failed is an error of exit code 2.
type failed string

// Error says what failed.
func (f failed) Error() string { return string(f) }

// ExitCode is 2: something was found, nothing went wrong in finding it.
func (failed) ExitCode() int { return 2 }

func simFailure(r sim.Report, steps int) string {
	var out []string
	for _, v := range r.Violations {
		out = append(out, fmt.Sprintf("%s: %s (step %d)\n    %s", v.Invariant, v.Text, v.Step, v.Replay(steps)))
	}
	for _, name := range r.Unreached {
		out = append(out, "never reached: "+name)
	}
	return "not right:\n  " + strings.Join(out, "\n  ")
}

func printSim(out io.Writer, r sim.Report) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tREACHED\tMEANING")
	for _, c := range r.Counters {
		if c.Means != "" {
			fmt.Fprintf(w, "%s\t%d\t%s\n", c.Name, c.Count, c.Means)
		}
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d seeds, %d steps, %d ledger entries, %d sends, %d effects; %d checks, %d violations, %d states unreached\n",
		r.Seeds, r.Steps, r.Entries, r.Sends, r.Effects, r.Checked, len(r.Violations), len(r.Unreached))
}

func printSimJSON(out io.Writer, r sim.Report, steps int) error {
	type violation struct {
		sim.Violation
		Replay string `json:"replay"`
	}
	vs := []violation{}
	for _, v := range r.Violations {
		vs = append(vs, violation{v, v.Replay(steps)})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{
		"apiVersion": spec.Group, "kind": "SimReport", "seeds": r.Seeds, "steps": r.Steps, "entries": r.Entries,
		"sends": r.Sends, "effects": r.Effects, "checked": r.Checked, "counters": r.Counters,
		"unreached": r.Unreached, "violations": vs,
	})
}

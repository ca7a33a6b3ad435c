package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// violated is a history that broke so many times with what must hold.
type violated int

// Error counts.
func (v violated) Error() string {
	if v == 1 {
		return "check: one violation"
	}
	return fmt.Sprintf("check: %d violations", int(v))
}

// ExitCode tells a broken history from files that cannot be read.
func (v violated) ExitCode() int { return 2 }

// checkFlags are those of check.
type checkFlags struct {
	ledger, acks, output string
	journals, budgets    []string
	capacity, global     float64
	period               time.Duration
	o                    checker.Options
}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Hold a ledger's export against the actuator's journal, and name the invariants that broke",
		Long: `Read a ledger export (setpoint ledger export) and the journals of all actuators,
and name every invariant that broke. Nothing of the agent is believed: the
checker keeps its own books. A limit that no flag gives is not checked, and the
table shows how often each invariant was held against something.

Exit code 0: nothing broke; 2: something did; 1: a file cannot be read.`,
		Example: `  setpoint-lab check --ledger export.jsonl --journal journal.jsonl
  setpoint-lab check --ledger export.jsonl --journal a.jsonl --journal b.jsonl --acks acks.jsonl \
    --min-spacing 2m --effects-per-hour 6 --capacity 3 --global-capacity 10 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *checkFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.ledger, "ledger", "", "the ledger's export (required)")
	fs.StringArrayVar(&f.journals, "journal", nil, "an actuator's journal, JSON lines; once for each actuator (required)")
	fs.StringVar(&f.acks, "acks", "", `what was acknowledged, JSON lines {"seq":…,"hash":"…"}`)
	fs.StringVarP(&f.output, "output", "o", "table", "table or json")
	durations := []struct {
		to         *time.Duration
		name, help string
		value      time.Duration
	}{
		{&f.o.Slack, "slack", "how long a request may be under way when its permit expires", time.Second},
		{&f.o.Skew, "skew", "how far clocks of actuator, hosts and store may differ", 0},
		{&f.o.MinSpacing, "min-spacing", "time between two starts on a service; 0 is not checked", 0},
		{&f.o.Sweep, "sweep", "the sweep interval, for how long an approval waits; 0 is not checked", 0},
		{&f.period, "period", "the budgets' period", 28 * 24 * time.Hour},
	}
	for _, d := range durations {
		*d.to = d.value
		fs.Var((*duration)(d.to), d.name, d.help)
	}
	fs.IntVar(&f.o.EffectsPerHour, "effects-per-hour", 0, "cap on all starts in an hour; 0 is not checked")
	fs.IntVar(&f.o.EffectsPerServicePerHour, "effects-per-service-per-hour", 0, "cap on a service's starts in an hour; 0 is not checked")
	fs.Float64Var(&f.capacity, "capacity", -1, "budget of each action of each service; below 0 is not checked")
	fs.StringArrayVar(&f.budgets, "budget", nil, "budget of one action, as service/action=capacity")
	fs.Float64Var(&f.global, "global-capacity", -1, "budget of all actions together; below 0 is not checked")
	fs.BoolVar(&f.o.DuplicateDelivery, "duplicate-delivery", false, "a proxy may deliver one request twice; that is no second send")
}

// duration is a flag in Prometheus's units.
type duration time.Duration

// String is the value as it would be written.
func (d *duration) String() string { return spec.FormatDuration(time.Duration(*d)) }

// Set reads a value.
func (d *duration) Set(s string) error {
	v, err := spec.ParseDuration(s)
	*d = duration(v)
	return err
}

// Type is what help calls the value.
func (d *duration) Type() string { return "duration" }

func (f *checkFlags) run(cmd *cobra.Command) error {
	switch {
	case f.ledger == "":
		return usageError(cmd, "--ledger is required: write one with `setpoint ledger export`")
	case len(f.journals) == 0:
		return usageError(cmd, "--journal is required: what an actuator did is the evidence")
	case f.output != "table" && f.output != "json":
		return usageError(cmd, "-o %s: unknown output, want table or json", f.output)
	}
	if err := f.limits(); err != nil {
		return usageError(cmd, "%v", err)
	}
	report, err := f.check()
	if err != nil {
		return err
	}
	if err := f.print(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if !report.Clean() {
		return violated(len(report.Violations))
	}
	return nil
}

// limits makes budgets of the flags.
func (f *checkFlags) limits() error {
	if f.capacity >= 0 {
		f.o.Budget = checker.Budget{Period: f.period, Capacity: f.capacity}
	}
	if f.global >= 0 {
		f.o.Global = checker.Budget{Period: f.period, Capacity: f.global}
	}
	f.o.Budgets = map[string]checker.Budget{}
	for _, text := range f.budgets {
		name, value, _ := strings.Cut(text, "=")
		capacity, err := strconv.ParseFloat(value, 64)
		if err != nil || capacity < 0 || strings.Count(name, "/") != 1 {
			return fmt.Errorf("--budget %s: want service/action=capacity, e.g. checkout/scale=3", text)
		}
		f.o.Budgets[name] = checker.Budget{Period: f.period, Capacity: capacity}
	}
	return nil
}

func (f *checkFlags) check() (checker.Report, error) {
	journal := []executetest.Record{}
	for _, path := range f.journals {
		part, err := read(path, checker.ReadJournal)
		if err != nil {
			return checker.Report{}, fmt.Errorf("--journal %s: %w", path, err)
		}
		journal = append(journal, part...)
	}
	if f.acks != "" {
		var err error
		if f.o.Acknowledged, err = read(f.acks, checker.ReadAcks); err != nil {
			return checker.Report{}, fmt.Errorf("--acks %s: %w", f.acks, err)
		}
	}
	x, err := read(f.ledger, ledger.ReadExport)
	switch {
	case errors.Is(err, ledger.ErrCorrupt):
		return checker.Corrupt(err), nil
	case err != nil:
		return checker.Report{}, fmt.Errorf("--ledger %s: %w", f.ledger, err)
	}
	return checker.Check(x, journal, f.o), nil
}

func read[T any](path string, parse func(io.Reader) (T, error)) (out T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return parse(file)
}

func (f *checkFlags) print(out io.Writer, r checker.Report) error {
	if f.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			checker.Report
		}{spec.Group, "CheckReport", r})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INVARIANT\tWORD\tINSTANCES\tBROKEN\tWHAT IT SAYS")
	for _, c := range r.Checked {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", c.Invariant, c.Word, c.Instances, c.Broken, c.Invariant.Says())
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d entries, %d keys, %d requests, %d effects, %d double effects, %d effects after their horizon, %d of %d acknowledged entries lost\n",
		r.Entries, r.Keys, r.Requests, r.Effects, r.DoubleEffects, r.AfterHorizon, r.LostAcknowledged, r.Acknowledged)
	for _, v := range r.Violations {
		fmt.Fprintln(out, "broken:", v)
	}
	return nil
}

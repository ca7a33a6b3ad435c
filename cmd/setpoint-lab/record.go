package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/policies"
)

// recordFlags are those of eval record.
type recordFlags struct {
	out  string
	days int
	seed uint64
}

func newEvalRecordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record a month of decisions in simulated time, as an export of its ledger",
		Long: `Play a month in simulated time: five services that break now and then, the
agent's own loop over them with the shipped policy, and people who answer, freeze
and reset. What is written is the export of its ledger, a past on which a policy
can be tried: setpoint policy replay --ledger month.jsonl.gz --with policies/

The same policy, days and seed give the same file. A month takes a few minutes.`,
		Example: `  setpoint-lab eval record --out evals/month.jsonl.gz
  setpoint-lab eval record --out week.jsonl --days 7 --seed 3`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.out, "out", "", "the file to write; compressed when its name ends in .gz (required)")
	cmd.Flags().IntVar(&f.days, "days", 30, "how many days")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "of faults, traffic and people")
	return cmd
}

func (f recordFlags) run(ctx context.Context, progress io.Writer) error {
	if f.out == "" {
		return errors.New("eval record: name the file to write with --out")
	}
	policy, err := rego.Load(policies.FS, rego.Options{Deadline: time.Minute})
	if err != nil {
		return err
	}
	began := time.Now()
	return writeWhole(f.out, func(to io.Writer) error {
		return month.Record(ctx, month.Options{Days: f.days, Seed: f.seed, Policy: policy, Progress: func(days int) {
			fmt.Fprintf(progress, "%d of %d days after %s\n", days, f.days, time.Since(began).Round(time.Second))
		}}, to)
	})
}

// writeWhole writes beside the file and renames at the end, so that half of one
// is never found under its name. A name in .gz compresses, without a name or a
// time in its head, so that the bytes repeat.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".month-*")
	if err != nil {
		return fmt.Errorf("eval record: %w", err)
	}
	defer func() { err = errors.Join(err, clearAway(file.Name())) }()
	if strings.HasSuffix(name, ".gz") {
		err = compressed(file, write)
	} else {
		err = write(file)
	}
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func compressed(to io.Writer, write func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(write(z), z.Close())
}

// clearAway removes what was not renamed.
func clearAway(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// openLedger opens the ledger as its one writer and verifies its chain.
func openLedger(s site) (ledger.Store, error) {
	store, err := sqlite.Open(s.cfg.Ledger.SQLite.Path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// readLedger opens the ledger beside whoever writes it.
func readLedger(s site) (ledger.Store, error) {
	r, err := sqlite.OpenReader(s.cfg.Ledger.SQLite.Path)
	if err != nil {
		return nil, err
	}
	return readOnly{r}, nil
}

// readOnly is a Store for plans: nothing can be appended through it.
type readOnly struct{ *sqlite.Reader }

var errReadOnly = errors.New("the ledger is open for reading only")

// Append refuses.
func (readOnly) Append(context.Context, ledger.Position, ledger.Plan) ([]ledger.Entry, error) {
	return nil, errReadOnly
}

func (a *app) ledgerCommand() *cobra.Command {
	return group("ledger", "The record of everything that happened", a.ledgerInitCommand(), a.ledgerVerifyCommand(), a.ledgerExportCommand())
}

func (a *app) ledgerInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Create an empty ledger; one that is there is never touched",
		Example: `  setpoint ledger init`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := a.site()
			if err != nil {
				return err
			}
			path := s.cfg.Ledger.SQLite.Path
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return fmt.Errorf("ledger folder: %w", err)
			}
			if err := sqlite.Init(path, actor()); err != nil {
				return err
			}
			return a.print("created %s\n", path)
		},
	}
}

// verification is the answer of `ledger verify -o json`.
type verification struct {
	web.Meta
	Path  string `json:"path"`
	Valid bool   `json:"valid"`
	Fault string `json:"fault,omitempty"`
	ledger.Report
}

func (a *app) ledgerVerifyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read every entry and blob and check the chain, beside a running agent too",
		Example: `  setpoint ledger verify
  setpoint ledger verify -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.site()
			if err != nil {
				return err
			}
			return a.verify(cmd.Context(), s.cfg.Ledger.SQLite.Path, output)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) verify(ctx context.Context, path, output string) error {
	r, err := sqlite.OpenReader(path)
	if err != nil {
		return err
	}
	report, fault := r.Verify(ctx)
	if err := r.Close(); err != nil {
		return err
	}
	if output == formatTable {
		if fault != nil {
			return fault
		}
		return a.print("%s: %d entries and %s verified, head %d %s\n", path, report.Entries, count(int(report.Blobs), "blob"), report.Head.Seq, short(report.Head.Hash))
	}
	v := verification{Meta: web.Meta{APIVersion: spec.Group, Kind: "Verification"}, Path: path, Valid: fault == nil, Report: report}
	if fault != nil {
		v.Fault = fault.Error()
	}
	if err := emit(a.out, output, v); err != nil {
		return err
	}
	if fault != nil {
		return exitCode(exitError)
	}
	return nil
}

func (a *app) ledgerExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write entries and blobs as JSON lines, verified on the way, beside a running agent too",
		Long: `Write the whole ledger to standard output: one JSON object a line, the format
first, then entries in the order of the chain, then blobs, then the end with
their numbers. A file without its end was cut off.`,
		Example: `  setpoint ledger export > ledger.jsonl
  setpoint ledger export | jq -r 'select(.entry.kind == "claim") | .entry.body.key'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := a.site()
			if err != nil {
				return err
			}
			r, err := sqlite.OpenReader(s.cfg.Ledger.SQLite.Path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			out := bufio.NewWriterSize(a.out, 1<<16)
			return errors.Join(ledger.Export(cmd.Context(), r, out), out.Flush())
		},
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) ledgerCommand() *cobra.Command {
	return group("ledger", "The record of everything that happened", a.ledgerInitCommand(), a.ledgerVerifyCommand(),
		a.ledgerExportCommand(), a.ledgerLowerMarkCommand(), a.ledgerAdoptCommand())
}

// warnSeen says that a fresh ledger is not the one that this host knows.
func (a *app) warnSeen(s site) error {
	at, err := seenfile.Seen(s.seenFile())
	if err == nil && at.Seq > 0 {
		a.say("setpoint: this host has seen another ledger up to entry %d, and will not act on a fresh one: "+
			"restore that one, or go on with this by `setpoint ledger adopt --reason …`", at.Seq)
	}
	return err
}

func (a *app) ledgerInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Create an empty ledger; one that is there is never touched",
		Example: `  setpoint ledger init`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.site()
			if err != nil {
				return err
			}
			if err := createLedger(cmd.Context(), s); err != nil {
				return err
			}
			if err := a.print("created %s\n", s.where()); err != nil {
				return err
			}
			return a.warnSeen(s)
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
			return a.verify(cmd.Context(), s, output)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func entryCount(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func (a *app) verify(ctx context.Context, s site, output string) error {
	path := s.where()
	r, err := readLedger(ctx, s)
	if err != nil {
		return err
	}
	report, fault := r.Verify(ctx)
	if fault == nil {
		fault = older(ctx, s, r)
	}
	if err := r.Close(); err != nil {
		return err
	}
	if output == formatTable {
		if fault != nil {
			return fault
		}
		return a.print("%s: %s and %s verified, head %d %s\n", path, entryCount(report.Entries), count(int(report.Blobs), "blob"), report.Head.Seq, short(report.Head.Hash))
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
			r, err := readLedger(cmd.Context(), s)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			out := bufio.NewWriterSize(a.out, 1<<16)
			return errors.Join(ledger.Export(cmd.Context(), r, out), out.Flush())
		},
	}
}

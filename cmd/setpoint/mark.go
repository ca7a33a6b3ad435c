package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) ledgerLowerMarkCommand() *cobra.Command {
	var service, reason string
	cmd := &cobra.Command{
		Use:   "lower-mark",
		Short: "Go back to the present after a clock that ran ahead, in your name",
		Long: `Go back to the present after a clock that ran ahead. Window ids never decrease
by themselves, and neither does the time of the ledger: entries that were
written in the future hold everything until that future has come. This sets the
marks that lie in the future, and the ledger's time, to now. Keys that were
claimed stay claimed. Make sure first that the clock is right.`,
		Example: `  setpoint ledger lower-mark --reason "NTP was a day ahead until 14:10"
  setpoint ledger lower-mark --service checkout --reason "…"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(cmd, &reason, "say what the clock did"); err != nil {
				return err
			}
			return a.lowerMark(cmd.Context(), service, reason)
		},
	}
	cmd.Flags().StringVar(&service, "service", "", "only this service's mark (default: all)")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	return cmd
}

func (a *app) lowerMark(ctx context.Context, service, reason string) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	set, err := s.documents()
	if err != nil {
		return fmt.Errorf("the windows stand in the documents: %w", err)
	}
	if _, ok := set.Service(service); service != "" && !ok {
		return unknownService(set, service)
	}
	body := web.LowerRequest{Service: service, Reason: reason}
	err = a.record(ctx, s, message{http.MethodPost, "/api/v1/ledger/lower-mark", body}, func(d *reconcile.Desk) error {
		return d.LowerMark(ctx, web.Windows(set, service, a.now()), actor(), reason)
	})
	if err != nil {
		return fmt.Errorf("lower the mark: %w", err)
	}
	return a.print("marks lowered to the present by %s\n", actor())
}

func (a *app) ledgerAdoptCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Go on with a ledger that is older than what this host has seen, in your name",
		Long: `Go on with a ledger that is older than what this host has seen of it, or with
another one. Nobody knows which keys were claimed in what is lost, nor what was
charged: so every window that has begun until now counts as spent. Restoring the
newest copy is better. The agent must be stopped, or started again afterwards.`,
		Example: `  setpoint ledger verify
  setpoint ledger adopt --reason "the disk of node 3 is gone, restored Tuesday's backup"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(cmd, &reason, "say what was lost"); err != nil {
				return err
			}
			return a.adopt(cmd.Context(), reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	return cmd
}

func (a *app) adopt(ctx context.Context, reason string) (err error) {
	s, err := a.site()
	if err != nil {
		return err
	}
	store, err := a.openLedger(ctx, s)
	if err == nil {
		return errors.Join(store.Close(), errors.New("nothing to adopt: the ledger is the one that this host has seen"))
	}
	if !distrusted(err) {
		return noWriter(s, err)
	}
	if store, err = a.openAny(ctx, s); err != nil {
		return noWriter(s, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// What cannot be read is not known; then nothing is named as lost.
	seen, _ := seenfile.Seen(s.seenFile())
	at, err := reconcile.NewDesk(store, s.groups(), a.now).Adopt(ctx, ledger.Adopted{Seen: seen, By: actor(), Reason: reason})
	if err != nil {
		return fmt.Errorf("adopt the ledger: %w", err)
	}
	if err := seenfile.Forget(s.seenFile(), at); err != nil {
		return err
	}
	if err := a.print("%s adopted at entry %d by %s; every window until now counts as spent\n", s.where(), at.Seq, actor()); err != nil {
		return err
	}
	return a.print("start the agent again: one that runs goes on observing\n")
}

func (a *app) ceilingCommand() *cobra.Command {
	return group("ceiling", "The highest verdict that the ledger lets an action get",
		a.setCeilingCommand("raise", "Let an action get a higher verdict again, in your name"),
		a.setCeilingCommand("lower", "Let an action get no higher verdict than this, in your name"))
}

func (a *app) setCeilingCommand(word, short string) *cobra.Command {
	var body web.CeilingRequest
	var until string
	cmd := &cobra.Command{
		Use:   word,
		Short: short,
		Example: fmt.Sprintf(`  setpoint get actions
  setpoint ceiling %s --service checkout --action scale --to approval --reason "…" --until 7d`, word),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(cmd, &body.Reason, "say why"); err != nil {
				return err
			}
			body.Raise = word == "raise"
			if body.Raise && until == "" {
				return usageError(cmd, "--until is required: autonomy is given back for a time (7d, or a time), or for ever (never)")
			}
			if until != "" && until != "never" {
				t, err := web.ParseUntil(until, a.now())
				if err != nil {
					return usageError(cmd, "--until: %v", err)
				}
				body.Until = t
			}
			return a.setCeiling(cmd.Context(), body)
		},
	}
	cmd.Flags().StringVar(&body.Service, "service", "", "the service (required)")
	cmd.Flags().StringVar(&body.Action, "action", "", "the action (default: all of the service)")
	cmd.Flags().StringVar(&body.To, "to", "", "deny, escalate, approval or auto (required)")
	cmd.Flags().StringVar(&body.Reason, "reason", "", "why (required)")
	cmd.Flags().StringVar(&until, "until", "", "when it ends by itself: a duration such as 7d, a time, or never (required to raise)")
	for _, name := range []string{"service", "to"} {
		_ = cmd.MarkFlagRequired(name) // The flag was made just now.
	}
	return cmd
}

func (a *app) setCeiling(ctx context.Context, body web.CeilingRequest) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	if set, err := s.documents(); err == nil {
		if err := web.CheckCeiling(set, body); err != nil {
			return err
		}
	}
	err = a.record(ctx, s, message{http.MethodPost, "/api/v1/ceilings", body}, func(d *reconcile.Desk) error {
		return d.Ceiling(ctx, body.Service, body.Ceiling(actor()), body.Raise)
	})
	if err != nil {
		return fmt.Errorf("ceiling: %w", err)
	}
	what := body.Service
	if body.Action != "" {
		what += "/" + body.Action
	}
	end := ""
	if !body.Until.IsZero() {
		end = " until " + body.Until.UTC().Format(time.RFC3339)
	}
	return a.print("%s may get %s at most%s, by %s\n", what, body.To, end, actor())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// actor is who sits at this terminal, as the operating system knows it.
func actor() string { return web.OSActor(uint32(os.Getuid())) }

// record writes one thing: through the agent when one runs, otherwise into the
// ledger itself, whose lock tells that nobody else writes.
func (a *app) record(ctx context.Context, s site, m message, direct func(*reconcile.Desk) error) error {
	return a.recordInto(ctx, s, m, nil, direct)
}

// recordInto is record with the agent's answer.
func (a *app) recordInto(ctx context.Context, s site, m message, into any, direct func(*reconcile.Desk) error) error {
	err := newAgent(s.cfg.Web.Socket).do(ctx, writeWait, m, into)
	if !errors.Is(err, errNoAgent) {
		return err
	}
	store, err := a.openLedger(ctx, s)
	if err != nil {
		return noWriter(s, err)
	}
	err = direct(reconcile.NewDesk(store, s.groups(), a.now))
	return errors.Join(err, store.Close())
}

// cleanReason makes one line of --reason, which may be empty.
func cleanReason(cmd *cobra.Command, text *string) error {
	clean, err := web.Reason(*text)
	if err != nil {
		return usageError(cmd, "--reason: %v", err)
	}
	*text = clean
	return nil
}

// needReason also wants one.
func needReason(cmd *cobra.Command, text *string, missing string) error {
	if err := cleanReason(cmd, text); err != nil {
		return err
	}
	if *text == "" {
		return usageError(cmd, "--reason is required: %s", missing)
	}
	return nil
}

// noWriter says what to do when neither the agent nor the ledger takes a
// write.
func noWriter(s site, err error) error {
	if errors.Is(err, ledger.ErrLocked) {
		return fmt.Errorf("%w; it does not answer on web.socket (%s): is it starting, or run with another configuration?", err, s.cfg.Web.Socket)
	}
	return err
}

func (a *app) answerCommand(yes bool) *cobra.Command {
	word, past := web.WordApprove, "approved"
	short := "Approve an open ticket; the agent measures and judges again before it sends"
	if !yes {
		word, past = web.WordDeny, "denied"
		short = "Deny an open ticket; the action is not proposed again in this episode"
	}
	var reason string
	cmd := &cobra.Command{
		Use:   word + " <ticket>",
		Short: short,
		Example: fmt.Sprintf(`  setpoint get approvals
  setpoint %s t42 --reason "the release is known to be bad"`, word),
		Args: oneArg("one ticket (`setpoint get approvals` lists them)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cleanReason(cmd, &reason); err != nil {
				return err
			}
			s, err := a.site()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			err = a.record(ctx, s,
				message{http.MethodPost, "/api/v1/approvals/" + url.PathEscape(args[0]), web.AnswerRequest{Answer: word, Reason: reason}},
				func(d *reconcile.Desk) error {
					_, err := d.Answer(ctx, approve.Answer{Ticket: args[0], By: actor(), Via: "cli", Approve: yes, Reason: reason})
					return err
				})
			if err != nil {
				return fmt.Errorf("%s %s: %w", word, args[0], err)
			}
			return a.print("%s %s as %s\n", args[0], past, actor())
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func (a *app) settleCommand() *cobra.Command {
	var as, reason string
	cmd := &cobra.Command{
		Use:   "settle <decision>",
		Short: "Say what became of an effect that nobody could tell",
		Long: `Say what became of an effect that was sent and whose answer was lost. Look at
the target first: an SLI that recovered proves nothing about who fixed it.`,
		Example: `  setpoint get decisions              # the one whose effect is in-doubt or unknown
  setpoint settle d118 --as not-landed --reason "replicas are still 3"`,
		Args: oneArg("one decision (`setpoint get decisions` lists them)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			effect := execute.Effect(as)
			if effect != execute.Landed && effect != execute.NotLanded {
				return usageError(cmd, "--as wants landed or not-landed, not %q", as)
			}
			if err := needReason(cmd, &reason, "say how you know"); err != nil {
				return err
			}
			s, err := a.site()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			err = a.record(ctx, s,
				message{http.MethodPost, "/api/v1/decisions/" + url.PathEscape(args[0]) + "/settle", web.SettleRequest{As: as, Reason: reason}},
				func(d *reconcile.Desk) error { return d.Settle(ctx, args[0], effect, actor(), reason) })
			if err != nil {
				return fmt.Errorf("settle %s: %w", args[0], a.settled(ctx, s, args[0], err))
			}
			return a.print("%s settled as %s by %s\n", args[0], as, actor())
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "landed or not-landed")
	cmd.Flags().StringVar(&reason, "reason", "", "how you know (required)")
	return cmd
}

// settled says of an effect that is known that it is, rather than what the
// ledger would have had to be.
func (a *app) settled(ctx context.Context, s site, decision string, refused error) error {
	if errors.Is(refused, errHung) {
		return refused
	}
	state, err := a.foldLedger(ctx, s)
	if err != nil {
		return errors.Join(refused, err)
	}
	d, ok := web.DecisionByID(web.View{State: state, Now: a.now()}, decision)
	if !ok {
		return refused
	}
	switch execute.Effect(d.Effect) {
	case execute.None:
		return errors.New("nothing to settle: nothing was sent by this decision")
	case execute.Claimed, execute.Started, execute.InDoubt, execute.Unknown:
		return refused
	}
	by := ""
	if d.Receipt != nil && d.Receipt.Settled != "" {
		by = ", settled by " + d.Receipt.Settled
	}
	return fmt.Errorf("nothing to settle: %s of %s is %s%s", d.Action, d.Service, d.Effect, by)
}

func (a *app) ackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ack <page>",
		Short: "Say that you have seen a page, so that it is not handed on",
		Example: `  setpoint get pages
  setpoint ack e57`,
		Args: oneArg("one page (`setpoint get pages` lists them)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.site()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			err = a.record(ctx, s, message{method: http.MethodPost, path: "/api/v1/pages/" + url.PathEscape(args[0]) + "/ack"},
				func(d *reconcile.Desk) error { return d.Ack(ctx, args[0], actor(), "cli") })
			if err != nil {
				return fmt.Errorf("ack %s: %w", args[0], err)
			}
			return a.print("%s acknowledged by %s\n", args[0], actor())
		},
	}
}

func (a *app) budgetCommand() *cobra.Command {
	return group("budget", "The autonomy error budget: what acting alone costs", a.resetCommand())
}

func (a *app) resetCommand() *cobra.Command {
	var service, action, reason, until string
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Give an action a fresh budget and end its suspension, in your name",
		Example: `  setpoint get budgets --service checkout
  setpoint budget reset --service checkout --action scale --reason "the scaler is fixed"
  setpoint budget reset --reason "after the review"      # the global budget`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(cmd, &reason, "say why it may be trusted again"); err != nil {
				return err
			}
			body := web.ResetRequest{Service: service, Action: action, Reason: reason}
			if until != "" {
				t, err := web.ParseUntil(until, a.now())
				if err != nil {
					return usageError(cmd, "--until: %v", err)
				}
				body.Until = t
			}
			return a.reset(cmd.Context(), body)
		},
	}
	cmd.Flags().StringVar(&service, "service", "", "the service (with --action; neither: the global budget)")
	cmd.Flags().StringVar(&action, "action", "", "the action")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	cmd.Flags().StringVar(&until, "until", "", "when it ends: charges and suspension count again then (2h, or a time; default: never)")
	return cmd
}

func (a *app) reset(ctx context.Context, body web.ResetRequest) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	// With faults in the documents the agent, or the record, is the judge.
	if set, err := s.documents(); err == nil {
		if err := web.CheckReset(set, body.Service, body.Action); err != nil {
			return err
		}
	}
	err = a.record(ctx, s, message{http.MethodPost, "/api/v1/budgets/reset", body}, func(d *reconcile.Desk) error {
		return d.ResetBudget(ctx, body.Service, ledger.Reset{
			Action: body.Action, By: actor(), Reason: body.Reason, Until: body.Until,
		})
	})
	if err != nil {
		return fmt.Errorf("budget reset: %w", err)
	}
	what := "the global budget"
	if body.Service != "" {
		what = body.Service + "/" + body.Action
	}
	return a.print("%s reset by %s\n", what, actor())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) freezeCommand() *cobra.Command {
	var service, reason, until string
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Stop every action now, even while the agent hangs",
		Long: `Stop every action, of one service or of all. A file is written and synced
first, which needs no agent, lock or database; it is read before each send and
outranks every configuration. Measuring and paging go on.`,
		Example: `  setpoint freeze --reason "looking into it"
  setpoint freeze --service checkout --reason migration --until 2h
  setpoint get freezes
  setpoint thaw --all --reason "done"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needReason(cmd, &reason, "say why, for the people who find it frozen"); err != nil {
				return err
			}
			f := ledger.Freeze{ID: web.NewFreezeID(), Service: service, By: actor(), Reason: reason, At: a.now().UTC()}
			if until != "" {
				t, err := web.ParseUntil(until, a.now())
				if err != nil {
					return usageError(cmd, "--until: %v", err)
				}
				f.Until = t
			}
			return a.freeze(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&service, "service", "", "only this service (default: all)")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	cmd.Flags().StringVar(&until, "until", "", "when it ends by itself: a duration such as 2h, or a time")
	return cmd
}

func (a *app) freeze(ctx context.Context, f ledger.Freeze) error {
	p, err := a.places()
	if err != nil {
		return err
	}
	if err := a.knownService(f.Service); err != nil {
		return err
	}
	if err := a.freezeDir(p.freezeDir).Write(f); err != nil {
		return err
	}
	settled, err := a.freezeDir(p.freezeDir).Settled(sendWait)
	if err != nil {
		return fmt.Errorf("%s is frozen, but whether a send that had begun is over cannot be told: %w", f.ID, err)
	}
	what := "every service"
	if f.Service != "" {
		what = f.Service
	}
	end := ""
	if !f.Until.IsZero() {
		end = " until " + f.Until.Format(time.RFC3339)
	}
	file := filepath.Join(p.freezeDir, f.ID+".json")
	if err := a.print("%s: %s is frozen on this host%s (%s)\n", f.ID, what, end, file); err != nil {
		return err
	}
	if !settled {
		a.say("setpoint: a send that had begun before is still under way, or its agent hangs; nothing new is sent")
	}
	if p.doubt != nil {
		a.say("setpoint: %s has faults (`setpoint validate` shows them); if the agent was started with another ledger.freezeDir, this freeze is not where it looks", a.configFile())
	}
	return a.print("%s\n", a.follow(ctx, p, f))
}

// sendWait is how long a freeze waits for sends that had begun.
const sendWait = 2 * time.Second

// knownService refuses a mistyped name, which would freeze nothing. Documents
// that do not load stop nobody from freezing.
func (a *app) knownService(name string) error {
	set, loaded := a.anyDocuments()
	if name == "" || !loaded {
		return nil
	}
	if _, ok := set.Service(name); ok {
		return nil
	}
	return unknownService(set, name)
}

// anyDocuments loads the documents if that is possible.
func (a *app) anyDocuments() (set spec.Set, loaded bool) {
	s, err := a.site()
	if err == nil {
		set, err = loadDocuments(s.cfg.Documents)
	}
	return set, err == nil
}

func unknownService(set spec.Set, name string) error {
	var names []string
	for _, svc := range set.Services {
		names = append(names, svc.Name)
	}
	hint := "the documents have no service"
	if len(names) > 0 {
		hint = fmt.Sprintf("the documents have %s", orList(names))
	}
	if near := spec.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("no service %q: %s", name, hint)
}

// follow tells the ledger of a freeze that is in force already, and says what
// came of it.
func (a *app) follow(ctx context.Context, p places, f ledger.Freeze) string {
	err := newAgent(p.socket).do(ctx, freezeWait, message{http.MethodPost, "/api/v1/freezes",
		web.FreezeRequest{ID: f.ID, Service: f.Service, Reason: f.Reason, Until: f.Until}}, nil)
	if err == nil {
		return "the agent has recorded it in the ledger"
	}
	if !errors.Is(err, errNoAgent) {
		return fmt.Sprintf("%v; the file binds it before its next send, the ledger will follow", err)
	}
	if p.doubt != nil {
		return "no agent answers; the ledger will follow"
	}
	s, err := a.site()
	if err != nil {
		return "no agent answers; the ledger will follow"
	}
	store, err := a.openLedger(ctx, s)
	if err != nil {
		return notFollowed(s, err)
	}
	err = reconcile.NewDesk(store, s.groups(), a.now).Freeze(ctx, f)
	if err = errors.Join(err, store.Close()); err != nil {
		return notFollowed(s, err)
	}
	if s.cfg.Ledger.Postgres != nil {
		return "no agent answers here; recorded in the ledger directly, for every host"
	}
	return "no agent runs; recorded in the ledger directly"
}

// notFollowed says what a freeze binds when only its file is written.
func notFollowed(s site, err error) string {
	if s.cfg.Ledger.Postgres != nil {
		return fmt.Sprintf("ONLY THIS HOST is frozen: no agent answers here, and the ledger takes no entry (%v); "+
			"freeze the other hosts too", err)
	}
	return fmt.Sprintf("no agent answers, and the ledger takes no entry (%v); the ledger will follow", err)
}

func (a *app) thawCommand() *cobra.Command {
	var all bool
	var reason string
	cmd := &cobra.Command{
		Use:   "thaw <id>... | --all",
		Short: "Lift a freeze, in your name",
		Example: `  setpoint get freezes
  setpoint thaw f3a9c2d1 --reason "migration is done"
  setpoint thaw --all --reason "all clear"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usageError(cmd, "name the freezes to lift, or give --all (`setpoint get freezes` lists them)")
			}
			if err := needReason(cmd, &reason, "say why it may act again"); err != nil {
				return err
			}
			return a.thaw(cmd.Context(), args, reason)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "lift every freeze")
	cmd.Flags().StringVar(&reason, "reason", "", "why (required)")
	return cmd
}

func (a *app) thaw(ctx context.Context, ids []string, reason string) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	v, err := a.frozen(ctx, s)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		for _, f := range web.Freezes(v, web.Filter{}).Items {
			ids = append(ids, f.ID)
		}
		if len(ids) == 0 {
			return a.print("nothing is frozen\n")
		}
	}
	failed := 0
	for _, id := range ids {
		if err := a.thawOne(ctx, s, v, ledger.Thaw{ID: id, By: actor(), Reason: reason}); err != nil {
			failed++
			a.say("setpoint: thaw %s: %v%s", id, err, stillFrozen(v, id, err))
		}
	}
	if failed > 0 {
		if len(ids) > 1 {
			a.say("setpoint: %d of %s not lifted", failed, count(len(ids), "freeze"))
		}
		return exitCode(exitError)
	}
	return nil
}

// stillFrozen says what a freeze does whose thaw failed.
func stillFrozen(v web.View, id string, err error) string {
	switch {
	case !hasFreeze(v, id):
		return ""
	case errors.Is(err, errHung):
		return "; the freeze stays in force until the agent answers (`setpoint get freezes` shows it)"
	}
	return "; the freeze stays in force"
}

// thawOne records the thaw first: a file that is gone without a record would
// be an act of nobody.
func (a *app) thawOne(ctx context.Context, s site, v web.View, t ledger.Thaw) error {
	m := message{http.MethodDelete, "/api/v1/freezes/" + url.PathEscape(t.ID), web.ReasonRequest{Reason: t.Reason}}
	err := a.record(ctx, s, m, func(d *reconcile.Desk) error { return web.Thaw(ctx, d, v, t) })
	switch {
	case errors.Is(err, ledger.ErrMissing) && hasFreeze(v, t.ID):
		a.say("setpoint: there is no ledger to record it in; only the file is removed")
	case err != nil:
		return err
	}
	if err := a.freezeDir(s.cfg.Ledger.FreezeDir).Remove(t.ID); err != nil {
		return err
	}
	return a.print("%s thawed by %s\n", t.ID, t.By)
}

// frozen is a view with the freezes of files and ledger; without a ledger
// there are the files.
func (a *app) frozen(ctx context.Context, s site) (web.View, error) {
	v, err := a.view(ctx, s, false)
	if errors.Is(err, ledger.ErrMissing) {
		return a.viewWithoutLedger(s, false)
	}
	return v, err
}

func hasFreeze(v web.View, id string) bool {
	for _, f := range web.Freezes(v, web.Filter{}).Items {
		if f.ID == id {
			return true
		}
	}
	return false
}

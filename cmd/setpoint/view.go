package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// view is what the ledger, the documents and the freeze files say now. The
// ledger is only read, so a running agent is not disturbed. A list that does
// not rest on the documents is shown although they have faults: an incident is
// when people edit them.
func (a *app) view(ctx context.Context, s site, needDocuments bool) (web.View, error) {
	v, err := a.viewWithoutLedger(s, needDocuments)
	if err != nil {
		return web.View{}, err
	}
	v.State, err = a.foldLedger(ctx, s)
	if err != nil {
		return web.View{}, err
	}
	return v, nil
}

// foldLedger is what the ledger knows now.
func (a *app) foldLedger(ctx context.Context, s site) (*ledger.State, error) {
	r, err := readLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	state, err := ledger.Load(ctx, r)
	if err == nil {
		err = foldOn(ctx, r, state)
	}
	if err == nil {
		a.cautionSeen(ctx, s, r)
	}
	return state, errors.Join(err, r.Close())
}

// cautionSeen says so when what is shown is a ledger on which no agent acts.
func (a *app) cautionSeen(ctx context.Context, s site, r reader) {
	if err := older(ctx, s, r); err != nil {
		a.say("setpoint: %v; an agent only observes and pages until then", err)
	}
}

// older is why this ledger is not the one that this host has seen; nil where it
// is, or where this user cannot tell.
func older(ctx context.Context, s site, r reader) error {
	at, err := seenfile.Seen(s.seenFile())
	if err != nil {
		return nil //nolint:nilerr // The agent's own file; whoever only looks may not be able to read it.
	}
	if err := ledger.Anchor(ctx, r, at); errors.Is(err, ledger.ErrCorrupt) {
		return fmt.Errorf("%w: entry %d is not in it; restore the newest copy, or `setpoint ledger adopt` this one", seenfile.ErrOlder, at.Seq)
	}
	return nil
}

// unreadable says that a view goes on without a past.
func (a *app) unreadable(err error) {
	a.say("setpoint: the ledger cannot be used, so nothing of the past is known here and an agent only observes: %v", err)
}

// foldHistory is what the ledger knows of all that ever happened.
func foldHistory(ctx context.Context, s site) (*ledger.State, error) {
	r, err := readLedger(ctx, s)
	if err != nil {
		return nil, err
	}
	state := ledger.NewHistory()
	err = foldOn(ctx, r, state)
	return state, errors.Join(err, r.Close())
}

// viewWithoutLedger is what is known without a past.
func (a *app) viewWithoutLedger(s site, needDocuments bool) (web.View, error) {
	set, undeclared := s.documents()
	switch {
	case undeclared != nil && needDocuments:
		return web.View{}, undeclared
	case undeclared != nil:
		a.say("setpoint: the documents have faults (`setpoint validate` shows them); this is what the ledger has")
	}
	files, err := a.freezeDir(s.cfg.Ledger.FreezeDir).List()
	if err != nil {
		return web.View{}, err
	}
	return web.View{
		State: ledger.NewState(), Set: set, MaxMode: s.cfg.Limits.MaxMode,
		Global: budget.Policy{Period: s.cfg.Budget.Period, Capacity: s.cfg.Budget.Capacity},
		Files:  files, Now: a.now(), Undeclared: undeclared,
	}, nil
}

// foldOn folds the entries that the state does not hold yet.
func foldOn(ctx context.Context, r reader, state *ledger.State) error {
	_, err := ledger.Walk(ctx, r, state.Head, func(e ledger.Entry) error {
		if err := state.Apply(e); err != nil {
			return fmt.Errorf("ledger entry %d: %w", e.Seq, err)
		}
		return nil
	})
	return err
}

// listFlags are those of every list.
type listFlags struct {
	service, since, output string
}

func (f *listFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.service, "service", "", "only this service")
	cmd.Flags().StringVar(&f.since, "since", "", "only what happened since: a duration such as 2h, or a time")
	outputFlag(cmd, &f.output, formatTable, formatWide, formatJSON, formatYAML, formatName)
}

func (f *listFlags) filter(cmd *cobra.Command, now time.Time) (web.Filter, error) {
	out := web.Filter{Service: f.service}
	if f.since == "" {
		return out, nil
	}
	t, err := web.ParseSince(f.since, now)
	if err != nil {
		return web.Filter{}, usageError(cmd, "--since: %v", err)
	}
	out.Since = t
	return out, nil
}

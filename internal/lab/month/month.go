// Package month records a month: the agent's loop in simulated time over five
// services that break now and then, with people who answer, freeze and reset. It
// gives the export of its ledger, for whoever wants to try a policy on a past
// and has none yet. The same options give the same past.
//
// The loop, measuring, PromQL, rules, policy, floors and freeze files are the
// product's. Time, traffic, the actuator, the people and the ledger's storage,
// which is in memory, are not.
package month

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// Start is when a recorded month begins.
func Start() time.Time { return time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC) }

// Options are what a month is made of.
type Options struct {
	// Days is how long it is.
	Days int
	// Seed chooses the faults, the traffic and what people do.
	Seed uint64
	// Policy rules on everything.
	Policy reconcile.Policy
	// Logger is the agent's; nil discards its log.
	Logger *slog.Logger
	// Progress, when set, is told how many days are over.
	Progress func(days int)
}

const day = 24 * time.Hour

// Record plays a month and writes the export of its ledger.
func Record(ctx context.Context, o Options, to io.Writer) (err error) {
	if o.Days < 1 {
		return fmt.Errorf("record a month: %d days, want at least 1", o.Days)
	}
	dir, err := os.MkdirTemp("", "setpoint-month-")
	if err != nil {
		return fmt.Errorf("record a month: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWorld(ctx, o, dir)
	defer func() { err = errors.Join(err, w.close()) }()
	if err == nil {
		err = w.play(ctx, o)
	}
	if err == nil {
		err = ledger.Export(ctx, w.chain, to)
	}
	if err != nil {
		return fmt.Errorf("record a month: %w", err)
	}
	return nil
}

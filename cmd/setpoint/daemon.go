package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// view shows what the loop knows at this moment.
func (d *daemon) view(use func(web.View)) {
	files, err := d.freezes.List()
	if err != nil {
		d.log.Error("the freeze folder cannot be read; everything holds", "err", err)
	}
	cfg := d.site.cfg
	v := web.View{
		Set: d.loop.Set(), Last: d.loop.Last(), MaxMode: cfg.Limits.MaxMode,
		Global: budget.Policy{Period: cfg.Budget.Period, Capacity: cfg.Budget.Capacity},
		Files:  files, Now: d.app.now(),
	}
	if d.feed != nil {
		v.Changes = d.feed.All()
	}
	d.loop.View(func(s *ledger.State) {
		v.State = s
		use(v)
	})
}

// once counts the passes of one sweep.
type once struct {
	mu   sync.Mutex
	left int
	errs []error
}

// endAfterSweep ends the loop once each service had its pass.
func (d *daemon) endAfterSweep(end context.CancelFunc, failed *error) {
	o := &once{left: -1}
	d.options.OnPass = func(r reconcile.Result) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.left < 0 {
			o.left = len(d.loop.Set().Services)
		}
		o.left--
		if r.Err != nil {
			o.errs = append(o.errs, fmt.Errorf("%s: %w", r.Service, r.Err))
			*failed = errors.Join(o.errs...)
		}
		if o.left == 0 {
			end()
		}
	}
}

// sweepOnce makes one pass for each service. The loop's own Run does it, so
// that a single sweep records what a start records.
func (d *daemon) sweepOnce(ctx context.Context) error {
	if len(d.loop.Set().Services) == 0 {
		d.log.Info("no services in the documents")
		return nil
	}
	return d.loop.Run(ctx)
}

// tokenBox holds the tokens of web.tokensFile as last loaded.
type tokenBox struct {
	mu  sync.Mutex
	now web.Tokens
}

func (t *tokenBox) get() web.Tokens {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

func (t *tokenBox) set(tokens web.Tokens) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = tokens
}

package incident

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// Run plays one incident with one interval between sweeps, and gives what the
// oracles say. An error is a fault of the run itself.
func Run(ctx context.Context, in Incident, sweep time.Duration, o Options) (score Score, err error) {
	dir, err := os.MkdirTemp("", "setpoint-incident-")
	if err != nil {
		return Score{}, fmt.Errorf("incident %s: %w", in.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWorld(ctx, in, sweep, o, dir)
	defer func() { err = errors.Join(err, w.close()) }()
	if err == nil {
		err = w.play(ctx)
	}
	if err == nil {
		score, err = w.score(ctx)
	}
	if err != nil {
		return Score{}, fmt.Errorf("incident %s: %w", in.Name, err)
	}
	return score, nil
}

// play lets time pass from one thing that is due to the next.
func (w *world) play(ctx context.Context) error {
	if err := w.loop.Start(ctx); err != nil {
		return err
	}
	start := w.now()
	end, scraped, swept, started := w.began.Add(w.in.For), start, start, start
	for w.now().Before(end) {
		at := earliest(end, scraped.Add(scrape), swept.Add(w.sweep), w.timers.next())
		w.clock.Store(max(at.UnixNano(), w.clock.Load()))
		if !w.now().Before(scraped.Add(scrape)) {
			if err := w.traffic.scrape(scraped, w.now()); err != nil {
				return err
			}
			scraped = w.now()
		}
		w.timers.run(w.now())
		// What is said to last until the end does.
		if w.now().Before(swept.Add(w.sweep)) || !w.now().Before(end) {
			continue
		}
		swept = w.now()
		if w.restartDue(started) {
			started = w.now()
			if err := w.restart(ctx); err != nil {
				return err
			}
		}
		if err := w.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// pass is what people and agent do at one instant.
func (w *world) pass(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), w.freeze(ctx), w.answer(ctx)); err != nil {
		return err
	}
	for _, res := range w.loop.Sweep(ctx) {
		if res.Err != nil {
			return fmt.Errorf("the pass of %s at %s: %w", res.Service, w.now().Sub(w.began), res.Err)
		}
	}
	return nil
}

// restart is another process over the same ledger, that knows nothing else.
func (w *world) restart(ctx context.Context) error {
	loop, err := reconcile.New(ctx, w.options)
	if err != nil {
		return fmt.Errorf("start again at %s: %w", w.now().Sub(w.began), err)
	}
	w.loop = loop
	return loop.Start(ctx)
}

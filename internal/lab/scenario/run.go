package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/shop"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// scrape is how often the shop is measured, in simulated time.
const scrape = 15 * time.Second

// Options are who proposes, and how the shop's traffic falls.
type Options struct {
	Proposer string
	Seed     int
	// Model is whom the proposer openai asks.
	Model Model
	// Policy is asked in the place of the shipped one; nil: the shipped one.
	Policy reconcile.Policy
	// Inspect is shown what the oracles hold when the run is over; it may be nil.
	Inspect func(Oracles) error
	// Logger is the agent's; nil discards its log.
	Logger *slog.Logger
}

// Run plays one scenario with one proposer and gives what the oracles say. An
// error is a fault of the run itself, never of a proposer.
func Run(ctx context.Context, s Scenario, o Options) (score Score, err error) {
	if err := CheckProposer(o.Proposer); err != nil {
		return Score{}, err
	}
	dir, err := os.MkdirTemp("", "setpoint-eval-")
	if err != nil {
		return Score{}, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWorld(ctx, s, o, dir)
	defer func() { err = errors.Join(err, w.close()) }()
	if err == nil {
		err = w.play(ctx)
	}
	if err == nil && w.whole != nil {
		err = w.whole()
	}
	if err != nil {
		return Score{}, fmt.Errorf("scenario %s, proposer %s, seed %d: %w", s.Name, o.Proposer, o.Seed, err)
	}
	score, err = w.score(ctx, o)
	if err == nil && o.Inspect != nil {
		err = o.Inspect(Oracles{Documents: w.set, Journal: w.shop.Journal(), Ledger: w.store})
	}
	return score, err
}

// Oracles are what no proposer can write to.
type Oracles struct {
	Documents spec.Set
	// Journal is the actuator's.
	Journal []executetest.Record
	// Ledger is open until the function that is shown it returns.
	Ledger ledger.Store
}

// play lets time pass: first the healthy hours that the long windows need, then
// the scenario with the agent running.
func (w *world) play(ctx context.Context) error {
	for range history(w.set) / scrape {
		if err := w.tick(); err != nil {
			return err
		}
	}
	w.began = w.now.time()
	if err := w.loop.Start(ctx); err != nil {
		return err
	}
	pending := w.s.Faults
	swept := w.began
	for elapsed := time.Duration(0); elapsed < w.s.For; elapsed += scrape {
		pending = w.breakWhatIsDue(pending, elapsed)
		if err := w.tick(); err != nil {
			return err
		}
		if w.now.time().Sub(swept) < w.cfg.Sweep.Interval {
			continue
		}
		swept = w.now.time()
		if err := w.pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

// breakWhatIsDue injects faults, and gives those that are not due yet.
func (w *world) breakWhatIsDue(pending []Fault, elapsed time.Duration) []Fault {
	var later []Fault
	for _, f := range pending {
		if f.At > elapsed {
			later = append(later, f)
			continue
		}
		w.shop.Inject(f.Fault)
	}
	return later
}

// tick is one scrape interval of the shop, and the scrape that ends it.
func (w *world) tick() error {
	w.shop.Tick(scrape)
	w.now.advance(scrape)
	for _, service := range shop.Names() {
		if err := w.engine.Ingest(w.now.time(), service, w.shop.Gatherer(service)); err != nil {
			return fmt.Errorf("store the metrics of %s: %w", service, err)
		}
	}
	return nil
}

// pass is what people and agent do at one instant.
func (w *world) pass(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.answer(ctx); err != nil {
		return err
	}
	for _, res := range w.loop.Sweep(ctx) {
		if res.Err != nil {
			return fmt.Errorf("the pass of %s at %s: %w", res.Service, w.now.time().Sub(w.began), res.Err)
		}
	}
	return nil
}

// answer lets the scenario's person answer the tickets that have waited long
// enough.
func (w *world) answer(ctx context.Context) error {
	a := w.s.Answers
	if a == nil {
		return nil
	}
	var due []string
	w.loop.View(func(s *ledger.State) {
		for _, name := range s.ServiceNames() {
			t, ok := s.OpenTicket(name)
			if ok && t.State == approve.Open && w.now.time().Sub(t.Asked) >= a.After {
				due = append(due, t.ID)
			}
		}
	})
	for _, id := range due {
		_, err := w.loop.Answer(ctx, approve.Answer{
			Ticket: id, By: a.Who, Via: "cli", Approve: a.Approve, Reason: "as scenario " + w.s.Name + " says",
		})
		var refused *approve.Refusal
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("answer %s: %w", id, err)
		}
	}
	return nil
}

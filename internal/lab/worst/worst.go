// Package worst proves the worst case: the agent's loop in simulated time, with a
// policy that allows everything, against proposers that do as much harm as they
// can. It counts what the actuator did and what became of the services in truth,
// not what the ledger says, and holds that against the bound that follows from
// configuration (budget.Worst).
//
// The loop, documents, policy evaluation, floors, budgets and ledger are the
// product's. Time, traffic, measurement, the actuator and the ledger's storage,
// which is in memory, are not. Nobody answers, resets or raises anything. The
// process is started anew every three days.
package worst

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/lab/month"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// anew is how often the process is started anew.
const anew = 3 * day

// Days is how long a full run is: one period of every budget in it.
const Days = 28

// Count is a greatest number that was found, whose it was, and its bound.
type Count struct {
	Name  string `json:"name,omitempty"`
	Found int    `json:"found"`
	Bound int    `json:"bound"`
	By    string `json:"by"`
}

// Exceeded reports whether more was found than may be.
func (c Count) Exceeded() bool { return c.Found > c.Bound }

// Row is what one adversary did.
type Row struct {
	Adversary string `json:"adversary"`
	Does      string `json:"does"`
	// Effects are all that were carried out, Harmful those that were harmful in
	// truth, undos included.
	Effects int   `json:"effects"`
	Harmful Count `json:"harmful"`
	// Action and Service are those with the most harmful effects.
	Action  Count `json:"action"`
	Service Count `json:"service"`
}

// Report is what all adversaries did under one configuration.
type Report struct {
	Setup string `json:"setup"`
	// Config says in words what was tried.
	Config string `json:"config"`
	Days   int    `json:"days"`
	Rows   []Row  `json:"rows"`
	// Action, Service and Overall are the greatest of all adversaries.
	Action  Count `json:"action"`
	Service Count `json:"service"`
	Overall Count `json:"overall"`
}

// Exceeded says whether any adversary did more harm than the bound.
func (r Report) Exceeded() bool {
	return r.Action.Exceeded() || r.Service.Exceeded() || r.Overall.Exceeded()
}

// Reached says whether the greatest numbers that were found are the bounds.
func (r Report) Reached() bool {
	is := func(c Count) bool { return c.Found == c.Bound }
	return is(r.Action) && is(r.Service) && is(r.Overall)
}

// Try plays all adversaries under a configuration. done is told of each one that
// has been played; it may be nil.
func Try(ctx context.Context, s Setup, days int, adversaries []Adversary, done func(adversary string)) (Report, error) {
	bound, err := s.Bound(days)
	if err != nil {
		return Report{}, fmt.Errorf("worst case of %s: %w", s.Name, err)
	}
	rows := make([]Row, len(adversaries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, a := range adversaries {
		g.Go(func() (err error) {
			if rows[i], err = play(ctx, s, days, a, bound); err != nil {
				return fmt.Errorf("worst case of %s, %s: %w", s.Name, a.Name, err)
			}
			if done != nil {
				done(a.Name)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Report{}, err
	}
	r := Report{Setup: s.Name, Config: s.String(), Days: days}
	for _, row := range rows {
		r.add(row)
	}
	return r, nil
}

func (r *Report) add(row Row) {
	first := len(r.Rows) == 0
	r.Rows = append(r.Rows, row)
	for _, x := range []struct {
		to   *Count
		from Count
	}{{&r.Action, row.Action}, {&r.Service, row.Service}, {&r.Overall, row.Harmful}} {
		if first || x.from.Found > x.to.Found {
			*x.to = x.from
		}
	}
}

// play lets the days pass.
func play(ctx context.Context, s Setup, days int, a Adversary, bound budget.WorstCase) (Row, error) {
	start := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	w := newWorld(s, a, start)
	store, err := month.NewChain("os:lab", w.clock)
	if err != nil {
		return Row{}, err
	}
	l, err := w.begin(ctx, store)
	if err != nil {
		return Row{}, err
	}
	for n := range days * int(day/sweep) {
		if n > 0 && n%int(anew/sweep) == 0 {
			if l, err = w.begin(ctx, store); err != nil {
				return Row{}, err
			}
		}
		w.pass()
		for _, res := range l.Sweep(ctx) {
			if res.Err != nil {
				return Row{}, fmt.Errorf("the pass of %s at %s: %w", res.Service, w.clock(), res.Err)
			}
		}
		if err := ctx.Err(); err != nil {
			return Row{}, err
		}
	}
	return w.row(bound), nil
}

// begin starts an agent over a ledger that may hold a past.
func (w *world) begin(ctx context.Context, store ledger.Store) (*reconcile.Reconciler, error) {
	set, err := w.setup.documents(w.adversary.clients())
	if err != nil {
		return nil, err
	}
	policy, err := allow()
	if err != nil {
		return nil, err
	}
	l, err := reconcile.New(ctx, reconcile.Options{
		Config: w.setup.config(), Documents: func() (spec.Set, error) { return set, nil }, Measurer: w, Proposer: w, Policy: policy,
		Executors: map[string]execute.Executor{"webhook": w}, Receivers: []escalate.Receiver{pager{}},
		Store: store, Freezes: thawed{}, Now: w.clock,
	})
	if err != nil {
		return nil, err
	}
	return l, l.Start(ctx)
}

// row counts, and puts the bounds beside it.
func (w *world) row(bound budget.WorstCase) Row {
	all, harmful, actions, services := w.tally()
	r := Row{Adversary: w.adversary.Name, Does: w.adversary.Does, Effects: all}
	r.Harmful = Count{Found: harmful, Bound: bound.Overall.Effects, By: bound.Overall.By}
	for i, a := range bound.Actions {
		name := a.Service + "/" + a.Action
		r.Action = nearer(i == 0, r.Action, Count{Name: name, Found: actions[name], Bound: a.Harmful.Effects, By: a.Harmful.By})
		r.Service = nearer(i == 0, r.Service, Count{Name: a.Service, Found: services[a.Service],
			Bound: bound.Services[a.Service].Effects, By: bound.Services[a.Service].By})
	}
	return r
}

// nearer keeps what is furthest beyond its bound or, where nothing is, the most.
func nearer(first bool, a, b Count) Count {
	beyond, more := b.Found-b.Bound > a.Found-a.Bound, b.Found > a.Found
	if first || beyond && b.Exceeded() || more && !a.Exceeded() {
		return b
	}
	return a
}

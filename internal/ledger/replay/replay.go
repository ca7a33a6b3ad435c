// Package replay judges recorded decisions again. It takes a ledger, or an
// export of one, and a policy, and gives for each recorded decision whether the
// recorded policy leads to exactly what was recorded, and what the other policy
// would have led to on the same facts.
//
// A decision is the join of floors and a ruling, and both sides are in the
// ledger: the floors and the input as blobs of the decision, the policy as the
// bundle that its revision names. So nothing is guessed and nothing measured
// again.
package replay

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Source is a recorded past: a reader of a ledger, or Export. Reads may overlap.
type Source interface {
	Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error)
	// Blob returns the bytes of a digest, or ledger.ErrNoBlob.
	Blob(ctx context.Context, digest string) ([]byte, error)
}

// Policy rules on a gate input. It is safe for concurrent use.
type Policy interface {
	Evaluate(ctx context.Context, input []byte) gate.Ruling
	Revision() string
}

// Options say what is judged again, and by which policy.
type Options struct {
	// With is the policy to judge by. A recorded decision of the same revision is
	// evaluated once.
	With Policy
	// Load makes a policy of a recorded bundle. It is called once for each.
	Load func(bundle []byte) (Policy, error)
	// Since and Until bound the times of entries, the first inclusively; zero is
	// no bound.
	Since, Until time.Time
	// Service is the only one that counts; "" is every one.
	Service string
	// Workers is how many decisions are judged at a time; 0 is one for each
	// processor.
	Workers int
}

// Status says what became of one recorded decision.
type Status int8

// The statuses.
const (
	// Reproduced: the recorded policy leads to exactly what was recorded.
	Reproduced Status = iota
	// NotReproduced: it does not, or a part that the entry names is missing.
	NotReproduced
	// NotReplayable: no policy ruled on it, or the entry does not say enough.
	NotReplayable
)

// Judged is one recorded decision, judged again.
type Judged struct {
	Entry           uint64
	ID              string
	Time            time.Time
	Service, Action string
	Status          Status
	// Why says why it was not reproduced or cannot be replayed.
	Why string
	// Old is of the recorded policy, New of Options.With. They are set, and
	// compared, only where Status is Reproduced.
	Old, New   gate.Outlook
	Difference gate.Difference
}

// Run judges every recorded decision again and calls each in the order of the
// chain, one call at a time. The chain is verified on the way. An error is of
// the source, of the context or of each; no decision makes one.
func Run(ctx context.Context, src Source, o Options, each func(Judged) error) error {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	j := newJudge(src, o)
	g, ctx := errgroup.WithContext(ctx)
	// What waits is bounded, however long the past is.
	todo := make(chan *task, o.Workers)
	order := make(chan *task, 8*o.Workers)
	g.Go(func() error {
		defer close(todo)
		defer close(order)
		_, err := ledger.Walk(ctx, src, ledger.Position{}, func(e ledger.Entry) error {
			if !o.wants(e) {
				return ctx.Err()
			}
			t := &task{entry: e, done: make(chan struct{})}
			return put(ctx, t, order, todo)
		})
		return err
	})
	for range o.Workers {
		g.Go(func() error {
			for t := range todo {
				var err error
				if t.judged, err = j.judge(ctx, t.entry); err != nil {
					return err
				}
				close(t.done)
			}
			return nil
		})
	}
	g.Go(func() error { return inOrder(ctx, order, each) })
	return g.Wait()
}

func (o Options) wants(e ledger.Entry) bool {
	return e.Kind == ledger.KindDecision && (o.Service == "" || e.Service == o.Service) &&
		!e.Time.Before(o.Since) && (o.Until.IsZero() || e.Time.Before(o.Until))
}

// task is one entry on its way; done is closed when it is judged.
type task struct {
	entry  ledger.Entry
	judged Judged
	done   chan struct{}
}

// put gives the task its place in the order before a worker may take it.
func put(ctx context.Context, t *task, queues ...chan<- *task) error {
	for _, q := range queues {
		select {
		case q <- t:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func inOrder(ctx context.Context, order <-chan *task, each func(Judged) error) error {
	for t := range order {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := each(t.judged); err != nil {
			return err
		}
	}
	return nil
}

package reconcile

import (
	"context"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// plan is what one caller wants to append to the state that it is shown.
type plan = func(s *ledger.State) ([]ledger.Draft, error)

// sharer is one that waits for a shared append.
type sharer struct {
	service string
	plan    plan
	// before are the failed appends that it knew of when it began to wait.
	before uint64
	done   bool
	// entries are its own, err is its own plan's or that of the append.
	entries []ledger.Entry
	err     error
	drafts  int
}

// maxShared bounds how many plans are one transaction.
const maxShared = 256

// share appends what one service's pass has to say together with what the passes
// of others have to say at that moment: when a thousand services break at once,
// each would otherwise wait for the disk alone, one after another. It is only for
// plans that look at their own service and at nothing that another's entry could
// change; claims, tickets and everything that people do go through append.
func (b *book) share(ctx context.Context, service string, p plan) ([]ledger.Entry, error) {
	mine := &sharer{service: service, plan: p, before: b.failures.Load()}
	b.queueing.Lock()
	b.queue = append(b.queue, mine)
	b.queueing.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !mine.done {
		b.appendShared(ctx, b.nextShared())
	}
	return mine.entries, mine.err
}

// nextShared takes those that wait, one of each service.
func (b *book) nextShared() []*sharer {
	b.queueing.Lock()
	defer b.queueing.Unlock()
	var batch, later []*sharer
	for _, x := range b.queue {
		same := slices.ContainsFunc(batch, func(y *sharer) bool { return x.service == y.service })
		if same || len(batch) == maxShared {
			later = append(later, x)
		} else {
			batch = append(batch, x)
		}
	}
	b.queue = later
	return batch
}

// appendShared appends for all of a batch, or for each alone where somebody else
// was first with one of them.
func (b *book) appendShared(ctx context.Context, batch []*sharer) {
	batch = b.worthIt(batch)
	if len(batch) == 0 {
		return
	}
	entries, err := b.store.Append(ctx, b.state.Head, ledger.PlanFrom(b.state, func(s *ledger.State) ([]ledger.Draft, error) {
		return planAll(batch, s), nil
	}))
	switch {
	case err == nil:
		b.writing = nil
		own := 0
		for _, x := range batch {
			own += x.drafts
		}
		rest := entries[len(entries)-own:]
		err = b.apply(entries)
		for _, x := range batch {
			x.entries, rest = rest[:x.drafts:x.drafts], rest[x.drafts:]
			if x.done = true; err != nil {
				x.entries, x.err = nil, err
			}
		}
		b.checkpoint(ctx)
	case raced(err), ctx.Err() != nil:
		for _, x := range batch {
			x.entries, x.err = b.appendLocked(ctx, x.plan)
			x.done = true
		}
	default:
		err = b.notWritten(ctx, err)
		for _, x := range batch {
			x.entries, x.err, x.done = nil, err, true
		}
	}
}

// worthIt leaves out those that have nothing to say, or must not try.
func (b *book) worthIt(batch []*sharer) []*sharer {
	return slices.DeleteFunc(batch, func(x *sharer) bool {
		if x.err = b.writable(x.before); x.err != nil {
			x.done = true
			return true
		}
		drafts, err := x.plan(b.state)
		x.done = err == nil && len(drafts) == 0
		return x.done
	})
}

// planAll are the drafts of a batch. One whose plan fails has none, and its own
// error.
func planAll(batch []*sharer, s *ledger.State) []ledger.Draft {
	var all []ledger.Draft
	for _, x := range batch {
		drafts, err := x.plan(s)
		if x.err = err; err != nil {
			drafts = nil
		}
		x.drafts = len(drafts)
		all = append(all, drafts...)
	}
	return all
}

// share appends for the service of the pass. It computes nothing meanwhile, so
// another pass may.
func (p *pass) share(ctx context.Context, what plan) (entries []ledger.Entry, err error) {
	p.r.unslotted(func() { entries, err = p.r.book.share(ctx, p.svc.Name, what) })
	return entries, err
}

func (p *pass) shareOne(ctx context.Context, draft func(s *ledger.State) (ledger.Draft, error)) error {
	_, err := p.share(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		d, err := draft(s)
		if err != nil {
			return nil, err
		}
		return []ledger.Draft{d}, nil
	})
	return err
}

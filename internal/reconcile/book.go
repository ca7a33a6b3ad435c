package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// book is the one place where the loop and people's commands touch the
// ledger: the folded State and the store, behind one lock.
type book struct {
	mu    sync.Mutex
	store ledger.Store
	state *ledger.State
	// reading and writing are the last errors of the store, each cleared by a
	// success of its own kind: a disk that is full can be read. While one is
	// set the loop only observes (DESIGN section 7).
	reading, writing error
	// corrupt is set once an entry did not fold. Nothing clears it but a start:
	// what this process knows is no longer what the ledger says.
	corrupt error
}

func newBook(store ledger.Store) *book {
	return &book{store: store, state: ledger.NewState()}
}

// chunk is how many entries are read at a time at a start.
const chunk = 1000

// catchUp folds what was appended since.
func (b *book) catchUp(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.catchUpLocked(ctx)
}

func (b *book) catchUpLocked(ctx context.Context) error {
	if b.store == nil {
		return nil
	}
	for {
		entries, err := b.store.Read(ctx, b.state.Head.Seq, chunk)
		if err == nil {
			err = b.apply(entries)
		}
		if b.corrupt != nil {
			return b.corrupt
		}
		if err != nil && ctx.Err() != nil {
			return err // whoever asked hung up, which says nothing of the ledger
		}
		if err != nil {
			b.reading = fmt.Errorf("read the ledger: %w", err)
			return b.reading
		}
		if len(entries) < chunk {
			b.reading = nil
			return nil
		}
	}
}

func (b *book) apply(entries []ledger.Entry) error {
	for _, e := range entries {
		if err := b.state.Apply(e); err != nil {
			b.corrupt = fmt.Errorf("fold entry %d: %w", e.Seq, err)
			return b.corrupt
		}
	}
	return nil
}

// append plans against the present state and appends, all or nothing. The plan
// sees a state that no entry is missing from; its error is returned as it is.
// The entries after the state that the caller knew are returned, its own last.
func (b *book) append(ctx context.Context, plan func(s *ledger.State) ([]ledger.Draft, error)) ([]ledger.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil {
		return nil, errors.New("there is no ledger to write to")
	}
	if b.corrupt != nil {
		return nil, b.corrupt
	}
	// Most passes change nothing: they need no transaction to learn it. What a
	// newer entry would change is seen by the next pass.
	if drafts, err := plan(b.state); err == nil && len(drafts) == 0 {
		return nil, nil
	}
	var planErr error
	entries, err := b.store.Append(ctx, b.state.Head, ledger.PlanFrom(b.state, func(s *ledger.State) ([]ledger.Draft, error) {
		drafts, err := plan(s)
		planErr = err
		return drafts, err
	}))
	if planErr != nil {
		return nil, planErr
	}
	if err != nil {
		return nil, b.notWritten(ctx, err)
	}
	b.writing = nil
	if err := b.apply(entries); err != nil {
		return nil, err
	}
	return entries, nil
}

// notWritten tells what an append's error says of the ledger, if anything.
func (b *book) notWritten(ctx context.Context, err error) error {
	switch {
	case raced(err), ctx.Err() != nil:
		return err
	case errors.Is(err, ledger.ErrCorrupt):
		b.corrupt = fmt.Errorf("append to the ledger: %w", err)
		return b.corrupt
	}
	b.writing = fmt.Errorf("append to the ledger: %w", err)
	return b.writing
}

// one appends a single entry.
func (b *book) one(ctx context.Context, draft func(s *ledger.State) (ledger.Draft, error)) error {
	_, err := b.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
		d, err := draft(s)
		if err != nil {
			return nil, err
		}
		return []ledger.Draft{d}, nil
	})
	return err
}

// raced: somebody else was first, which is no fault of the ledger.
func raced(err error) bool {
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrExists)
}

// view runs f with the state; f keeps nothing of it.
func (b *book) view(f func(s *ledger.State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.state)
}

// broken returns the store's fault, if any.
func (b *book) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, err := range []error{b.corrupt, b.reading} {
		if err != nil {
			return err
		}
	}
	return b.writing
}

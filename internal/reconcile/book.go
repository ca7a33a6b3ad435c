package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	// failures counts failed appends: whoever waited behind one does not try as
	// well, or a server that hangs would hang each of them in turn.
	failures atomic.Uint64
	// corrupt is set once an entry did not fold. Nothing clears it but a start:
	// what this process knows is no longer what the ledger says.
	corrupt error
	// unaudited is set while the part of the chain that a checkpoint stood for at
	// the start was not gone over: until then nothing is claimed.
	unaudited bool

	// queue holds what waits for a shared append.
	queueing sync.Mutex
	queue    []*sharer
}

func newBook(store ledger.Store) *book {
	return &book{store: store, state: ledger.NewState()}
}

// chunk is how many entries are read at a time at a start.
const chunk = 1000

// load begins with the newest checkpoint instead of the first entry, and
// returns it; its At is the zero Position without one.
func (b *book) load(ctx context.Context) (ledger.Checkpoint, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil || b.state.Head.Seq > 0 {
		return ledger.Checkpoint{}, nil
	}
	state, err := ledger.Load(ctx, b.store)
	if err != nil {
		return ledger.Checkpoint{}, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	b.state = state
	if state.Head.Seq == 0 {
		return ledger.Checkpoint{}, nil
	}
	c, err := ledger.NewestCheckpoint(ctx, b.store)
	b.unaudited = err == nil
	return c, err
}

// audit goes over the entries that a checkpoint stood for.
func (b *book) audit(ctx context.Context, c ledger.Checkpoint) error {
	if c.At.Seq == 0 {
		return nil
	}
	err := ledger.Audit(ctx, b.store, c)
	broken := errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrUnknownKind)
	if err != nil && !broken {
		return err // not finished, which says nothing of the ledger: it is tried again
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unaudited = false
	if broken {
		b.corrupt = fmt.Errorf("verify the ledger: %w", err)
	}
	return err
}

// audited reports whether the whole chain was verified.
func (b *book) audited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.unaudited
}

// fault says from outside that the ledger cannot be used for the life of this
// process.
func (b *book) fault(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.corrupt = err
}

// unwritable says from outside that the ledger cannot be written; the next
// append that succeeds clears it.
func (b *book) unwritable(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = err
}

// catchUp folds what was appended since.
func (b *book) catchUp(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.catchUpLocked(ctx, func(ledger.Entry) {})
}

// catchUpLocked calls heard with each entry that was folded.
func (b *book) catchUpLocked(ctx context.Context, heard func(ledger.Entry)) error {
	if b.store == nil {
		return nil
	}
	for {
		// From the newest entry that is known, which must still be there: a file
		// that was cut or replaced shows at once, not with the next append.
		entries, err := b.store.Read(ctx, max(b.state.Head.Seq, 1)-1, chunk)
		if err == nil {
			entries, err = b.since(entries)
		}
		if err == nil {
			err = b.apply(entries)
		}
		for _, e := range entries {
			heard(e)
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
		if len(entries) < chunk-1 {
			b.reading = nil
			return nil
		}
	}
}

// since drops the first of the entries, which must be the newest that is known.
func (b *book) since(entries []ledger.Entry) ([]ledger.Entry, error) {
	head := b.state.Head
	if head.Seq == 0 {
		return entries, nil
	}
	if len(entries) == 0 || entries[0].Position() != head {
		b.corrupt = fmt.Errorf("%w: entry %d, which was there, is no longer; was an older copy restored, or the file cut?", ledger.ErrCorrupt, head.Seq)
		return nil, b.corrupt
	}
	return entries[1:], nil
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

// news folds what was appended since, and names the services of which a person
// said something.
func (b *book) news(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	err := b.catchUpLocked(ctx, func(e ledger.Entry) {
		switch e.Kind {
		case ledger.KindAnswer, ledger.KindSettled, ledger.KindReset, ledger.KindCeiling:
			names = append(names, e.Service)
		}
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// append plans against the present state and appends, all or nothing. The plan
// sees a state that no entry is missing from; its error is returned as it is.
func (b *book) append(ctx context.Context, plan func(s *ledger.State) ([]ledger.Draft, error)) error {
	before := b.failures.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writable(before); err != nil {
		return err
	}
	_, err := b.appendLocked(ctx, plan)
	return err
}

// writable says why nothing is written now; before are the failures that the
// caller knew when it began to wait.
func (b *book) writable(before uint64) error {
	switch {
	case b.store == nil:
		return errors.New("there is no ledger to write to")
	case b.writing != nil && b.failures.Load() != before:
		return b.writing
	}
	return b.corrupt
}

// appendLocked returns the entries after the state that was known, its own last.
func (b *book) appendLocked(ctx context.Context, plan func(s *ledger.State) ([]ledger.Draft, error)) ([]ledger.Entry, error) {
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
	b.checkpoint(ctx)
	return entries, nil
}

// checkpoint appends one when it is time. It only saves time, so its failure is
// nobody's: the next append tries again, and fails by itself if the ledger does.
func (b *book) checkpoint(ctx context.Context) {
	if !b.state.CheckpointDue() || b.unaudited {
		return
	}
	at := b.state.CheckpointAt
	draft, err := ledger.CheckpointDraft(b.state)
	if err != nil {
		return
	}
	entries, err := b.store.Append(ctx, b.state.Head, ledger.PlanFrom(b.state, func(s *ledger.State) ([]ledger.Draft, error) {
		if s.CheckpointAt != at {
			return nil, ledger.ErrLost // another replica's is newer
		}
		return []ledger.Draft{draft}, nil
	}))
	if err == nil {
		_ = b.apply(entries) // It is kept in corrupt.
	}
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
	b.failures.Add(1)
	b.writing = fmt.Errorf("append to the ledger: %w", err)
	return b.writing
}

// one appends a single entry.
func (b *book) one(ctx context.Context, draft func(s *ledger.State) (ledger.Draft, error)) error {
	err := b.append(ctx, func(s *ledger.State) ([]ledger.Draft, error) {
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

package month

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// chain is a ledger in memory, so that its first entry too bears simulated time.
// It passes the contract of every store but is lost with its process.
type chain struct {
	now func() time.Time

	mu      sync.Mutex
	closed  bool
	entries []ledger.Entry
	blobs   map[string][]byte
	uniques map[string]bool
}

// errClosed: nothing is written any more.
var errClosed = errors.New("the chain is closed")

func newChain(by string, now func() time.Time) (*chain, error) {
	c := &chain{now: now, blobs: map[string][]byte{}, uniques: map[string]bool{}}
	e, err := ledger.Link(ledger.Position{}, now(), ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: by}})
	if err != nil {
		return nil, err
	}
	c.entries = []ledger.Entry{e}
	return c, nil
}

// Append runs plan against the entries after the position, and appends all that
// it returns or nothing.
func (c *chain) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(ctx.Err(), c.open()); err != nil {
		return nil, err
	}
	if after.Seq > uint64(len(c.entries)) || after != c.position(after.Seq) {
		return nil, fmt.Errorf("%w: entry %d is not in this chain", ledger.ErrCorrupt, after.Seq)
	}
	since := slices.Clone(c.entries[after.Seq:])
	drafts, err := plan(slices.Clone(since))
	if err != nil {
		return nil, err
	}
	fresh, err := c.link(drafts)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	c.entries = append(c.entries, fresh...)
	for i, d := range drafts {
		if d.Unique != "" {
			c.uniques[fresh[i].Unique] = true
		}
		for _, b := range d.Blobs {
			c.blobs[ledger.BlobDigest(b)] = slices.Clone(b)
		}
		for _, digest := range d.Drop {
			delete(c.blobs, digest)
		}
	}
	return append(since, fresh...), nil
}

// link makes entries of drafts without keeping them.
func (c *chain) link(drafts []ledger.Draft) ([]ledger.Entry, error) {
	last := c.entries[len(c.entries)-1]
	at, prev := ledger.Stamp(c.now(), last.Time, drafts), last.Position()
	taken := map[string]bool{}
	var out []ledger.Entry
	for _, d := range drafts {
		e, err := ledger.Link(prev, at, d)
		if err != nil {
			return nil, err
		}
		if d.Unique != "" && (c.uniques[d.Unique] || taken[d.Unique]) {
			return nil, fmt.Errorf("%s: %w", d.Unique, ledger.ErrExists)
		}
		taken[d.Unique] = true
		out, prev = append(out, e), e.Position()
	}
	return out, nil
}

func (c *chain) position(seq uint64) ledger.Position {
	if seq == 0 {
		return ledger.Position{}
	}
	return c.entries[seq-1].Position()
}

func (c *chain) open() error {
	if c.closed {
		return errClosed
	}
	return nil
}

// Read returns up to limit entries after seq, in order.
func (c *chain) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(ctx.Err(), c.open()); err != nil {
		return nil, err
	}
	from := min(after, uint64(len(c.entries)))
	rest := c.entries[from:]
	return slices.Clone(rest[:min(max(0, limit), len(rest))]), nil
}

// Newest returns the newest entry of a kind.
func (c *chain) Newest(ctx context.Context, kind ledger.Kind) (ledger.Entry, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(ctx.Err(), c.open()); err != nil {
		return ledger.Entry{}, false, err
	}
	for _, e := range slices.Backward(c.entries) {
		if e.Kind == kind {
			return e, true, nil
		}
	}
	return ledger.Entry{}, false, nil
}

// Blob returns the bytes of a digest.
func (c *chain) Blob(ctx context.Context, digest string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(ctx.Err(), c.open()); err != nil {
		return nil, err
	}
	b, ok := c.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", digest, ledger.ErrNoBlob)
	}
	return slices.Clone(b), nil
}

// EachBlob calls f with every blob, in the order of digests.
func (c *chain) EachBlob(ctx context.Context, f func(digest string, blob []byte) error) error {
	c.mu.Lock()
	digests := slices.Sorted(maps.Keys(c.blobs))
	c.mu.Unlock()
	for _, digest := range digests {
		b, err := c.Blob(ctx, digest)
		if err == nil {
			err = f(digest, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends it; a second call does nothing.
func (c *chain) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// NewChain returns an empty ledger in memory, by whose clock its entries bear
// their times.
func NewChain(by string, now func() time.Time) (ledger.Store, error) { return newChain(by, now) }

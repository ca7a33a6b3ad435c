// Package ledger is what happened. It takes entries, which are appended,
// hash-chained and never changed, and gives State: everything that the next
// pass needs to know of the past. There is no other memory.
//
// The package is pure; the stores are in the packages below it.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Position is a place in the chain; the zero Position is before the first
// entry.
type Position struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Entry is one link of the chain.
type Entry struct {
	Seq uint64 `json:"seq"`
	// Prev is the hash of the entry before; Hash covers Prev and everything
	// below, hex SHA-256.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
	// Time is the store's clock at the append, UTC.
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Service string    `json:"service"`
	// Unique is a name that at most one entry may ever have, e.g.
	// "claim/checkout:1764400200-600"; "" has no such bound.
	Unique string          `json:"unique"`
	Body   json.RawMessage `json:"body"`
}

// Draft is an entry to append.
type Draft struct {
	Kind    Kind
	Service string
	Unique  string
	// Body is one of the types in bodies.go, the one that belongs to Kind.
	Body any
	// Blobs are stored with the entry, by the SHA-256 (hex) of their bytes.
	Blobs [][]byte
	// Drop are digests of blobs that nothing needs any more: superseded
	// checkpoints, which can be made again. No other blob is ever dropped.
	Drop []string
}

// Plan decides what to append, seeing the entries that were appended since the
// position of the caller's State. It runs inside the store's transaction, may
// run more than once, and does nothing but compute. An error appends nothing
// and is returned as it is.
type Plan func(since []Entry) ([]Draft, error)

// Store is an append-only chain with blobs. Every implementation passes
// ledgertest.Run.
type Store interface {
	// Append runs plan against the entries after the position and appends what
	// it returns, all or nothing, durably. It returns the entries after the
	// position, the new ones last. A taken Unique is ErrExists; a position that
	// is not in the chain is ErrCorrupt. Any error but those, the plan's and the
	// context's means that the ledger cannot be written.
	Append(ctx context.Context, after Position, plan Plan) ([]Entry, error)
	// Read returns up to limit entries after seq, in order.
	Read(ctx context.Context, after uint64, limit int) ([]Entry, error)
	// Newest returns the newest entry of a kind; ok is false without one.
	Newest(ctx context.Context, kind Kind) (e Entry, ok bool, err error)
	// Blob returns the bytes of a digest, or ErrNoBlob.
	Blob(ctx context.Context, digest string) ([]byte, error)
	Close() error
}

// The errors that callers branch on.
var (
	// ErrExists: an entry with that Unique exists.
	ErrExists = errors.New("exists already")
	// ErrLimit: a limit of proposer.limits is used up.
	ErrLimit = errors.New("a limit of the proposer is used up")
	// ErrConflict is ErrExists, and what exists under the key are other bytes: two
	// who should decide alike did not.
	ErrConflict = fmt.Errorf("%w with another digest", ErrExists)
	// ErrLost: a condition of the append no longer holds (a lost claim).
	ErrLost = errors.New("the ledger moved on")
	// ErrNothing: there is nothing that the call could change.
	ErrNothing = errors.New("nothing to do")
	// ErrMissing: there is no ledger; `setpoint ledger init` creates one.
	ErrMissing = errors.New("no ledger")
	// ErrLocked: another process is the writer.
	ErrLocked = errors.New("the ledger has a writer already")
	// ErrCorrupt: the chain does not verify.
	ErrCorrupt = errors.New("the ledger's chain is broken")
	// ErrNoBlob: no blob has that digest.
	ErrNoBlob = errors.New("no such blob")
	// ErrUnknownKind: the entry was written by a newer version; acting on half
	// of its meaning could repeat an effect.
	ErrUnknownKind = errors.New("entry of an unknown kind")
)

package sqlite

import (
	"context"
	"fmt"
	"os"

	codes "modernc.org/sqlite/lib"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Append runs plan against the entries after the position and appends what it
// returns, in one transaction that is on the disk when Append returns.
func (s *Store) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.writable(ctx); err != nil {
		return nil, err
	}
	return s.transact(ctx, after, plan)
}

// transact is not interrupted: a caller that hangs up in a statement would
// leave open whether the transaction had begun, and with it every later append
// without one of its own. The last look at the caller is before the commit.
func (s *Store) transact(caller context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	ctx := context.WithoutCancel(caller)
	done := false
	defer func() {
		if !done {
			// Also after a failed begin and after a panic of plan: the next append
			// needs a connection without a transaction. The error is that of the
			// append.
			_, _ = s.conn.ExecContext(ctx, `ROLLBACK`)
		}
	}()
	if _, err := s.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return nil, s.fault(ctx, "begin", err)
	}
	since, fresh, err := s.write(ctx, after, plan)
	if err != nil || len(fresh) == 0 {
		return since, err
	}
	if err := s.commit(caller); err != nil {
		return nil, err
	}
	done = true
	newest := fresh[len(fresh)-1]
	s.head, s.last = newest.Position(), newest.Time
	return append(since, fresh...), nil
}

func (s *Store) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A commit that has begun is seen through: its outcome must be known.
	_, err := s.conn.ExecContext(context.WithoutCancel(ctx), `COMMIT`)
	if err == nil {
		return nil
	}
	if c := code(err); c == codes.SQLITE_IOERR || c == codes.SQLITE_CORRUPT {
		s.failed = err
	}
	return s.fault(ctx, "commit", err)
}

// writable refuses what an append must not be tried on.
func (s *Store) writable(ctx context.Context) error {
	switch {
	case s.closed:
		return fmt.Errorf("ledger %s: %w", s.path, os.ErrClosed)
	case s.failed != nil:
		return fmt.Errorf("ledger %s: not written since an earlier failure: %w", s.path, s.failed)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// A ledger that was moved or replaced under a running writer would take
	// entries that no later start finds.
	if now, err := os.Lstat(s.path); err != nil || !os.SameFile(now, s.file) {
		return fmt.Errorf("ledger %s was removed or replaced while open; put it back and restart", s.path)
	}
	if now, err := os.Lstat(s.path + "-wal"); err != nil || !os.SameFile(now, s.wal) {
		return fmt.Errorf("ledger %s: its log %s-wal was removed or replaced while open; restart, which writes what is in it into the ledger", s.path, s.path)
	}
	return nil
}

func (s *Store) write(ctx context.Context, after ledger.Position, plan ledger.Plan) (since, fresh []ledger.Entry, err error) {
	since, err = s.since(ctx, after)
	if err != nil {
		return nil, nil, err
	}
	// A copy, so that what is returned is what was read.
	drafts, err := plan(append([]ledger.Entry(nil), since...))
	if err != nil {
		return nil, nil, err
	}
	at := ledger.Stamp(s.now(), s.last, drafts)
	prev := s.head
	for _, d := range drafts {
		e, err := ledger.Link(prev, at, d)
		if err != nil {
			return nil, nil, fmt.Errorf("ledger %s: %w", s.path, err)
		}
		if err := s.insert(ctx, e, d.Blobs); err != nil {
			return nil, nil, err
		}
		if err := s.drop(ctx, d.Drop); err != nil {
			return nil, nil, err
		}
		fresh, prev = append(fresh, e), e.Position()
	}
	return since, fresh, nil
}

// since reads the entries after a position and makes sure that they follow it
// up to the head that this writer knows: a state that was folded from another
// chain, or a file that somebody else wrote to, is refused.
func (s *Store) since(ctx context.Context, after ledger.Position) ([]ledger.Entry, error) {
	if after.Seq > s.head.Seq {
		return nil, fmt.Errorf("ledger %s: %w: it ends at entry %d, the state at %d; was an older copy restored?",
			s.path, ledger.ErrCorrupt, s.head.Seq, after.Seq)
	}
	if after == s.head {
		return nil, s.untouched(ctx)
	}
	rows, err := s.conn.QueryContext(ctx, columns+`WHERE seq > ? ORDER BY seq`, after.Seq)
	if err != nil {
		return nil, s.fault(ctx, "read", err)
	}
	var es []ledger.Entry
	prev := after
	err = each(rows, func(e ledger.Entry) error {
		if err := ledger.Verify(prev, e); err != nil {
			return err
		}
		es, prev = append(es, e), e.Position()
		return nil
	})
	if err == nil && prev != s.head {
		err = fmt.Errorf("%w: it ends at entry %d, this writer left it at %d", ledger.ErrCorrupt, prev.Seq, s.head.Seq)
	}
	if err != nil {
		return nil, s.fault(ctx, "read", err)
	}
	return es, nil
}

func (s *Store) untouched(ctx context.Context) error {
	var last uint64
	if err := s.conn.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM entries`).Scan(&last); err != nil {
		return s.fault(ctx, "read", err)
	}
	if last != s.head.Seq {
		return fmt.Errorf("ledger %s: %w: it ends at entry %d, this writer left it at %d", s.path, ledger.ErrCorrupt, last, s.head.Seq)
	}
	return nil
}

func (s *Store) insert(ctx context.Context, e ledger.Entry, blobs [][]byte) error {
	_, err := s.conn.ExecContext(ctx, insertEntry, values(e)...)
	if code(err) == codes.SQLITE_CONSTRAINT && e.Unique != "" {
		return fmt.Errorf("ledger %s: %s: %w", s.path, e.Unique, ledger.ErrExists)
	}
	if err != nil {
		return s.fault(ctx, "append", err)
	}
	for _, b := range blobs {
		digest := ledger.BlobDigest(b)
		if b == nil {
			b = []byte{}
		}
		if _, err := s.conn.ExecContext(ctx, `INSERT INTO blobs (digest, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING`, digest, b); err != nil {
			return s.fault(ctx, "append blob", err)
		}
		if _, err := s.conn.ExecContext(ctx, `INSERT INTO entry_blobs (seq, digest) VALUES (?, ?) ON CONFLICT DO NOTHING`, e.Seq, digest); err != nil {
			return s.fault(ctx, "append blob", err)
		}
	}
	return nil
}

func (s *Store) drop(ctx context.Context, digests []string) error {
	for _, digest := range digests {
		for _, table := range []string{"entry_blobs", "blobs"} {
			if _, err := s.conn.ExecContext(ctx, `DELETE FROM `+table+` WHERE digest = ?`, digest); err != nil {
				return s.fault(ctx, "drop blob", err)
			}
		}
	}
	return nil
}

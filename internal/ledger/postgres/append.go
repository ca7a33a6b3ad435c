package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

const (
	// retries is how often an append is tried again that another session, or a
	// connection that died before its commit, was in the way of.
	retries = 4
	// near is how many entries are read while the head is held. A replica that is
	// further behind reads the others before it locks anything.
	near = 1000
)

// view is what one append has read: the entries after the caller's position,
// verified, up to at.
type view struct {
	since []ledger.Entry
	at    ledger.Position
	// last is the time of the entry at at; zero as long as it was not read.
	last time.Time
}

func (v *view) take(e ledger.Entry) error {
	if err := ledger.Verify(v.at, e); err != nil {
		return err
	}
	v.since, v.at, v.last = append(v.since, e), e.Position(), e.Time
	return nil
}

// errBehind asks for the entries that are too many to read under the lock.
var errBehind = errors.New("too many entries behind")

// again marks a failure before the commit that another try may not have.
type again struct{ error }

func (a again) Unwrap() error { return a.error }

// Append runs plan against the entries after the position and appends what it
// returns, in one transaction that is on the server's disk when Append returns.
// Appends of all writers are one at a time. The plan may run more than once.
func (s *Store) Append(ctx context.Context, after ledger.Position, plan ledger.Plan) ([]ledger.Entry, error) {
	v := &view{at: after}
	pause := &backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 3, MaxInterval: time.Second}
	pause.Reset()
	for try := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fresh, err := s.attempt(ctx, v, plan)
		var more again
		switch {
		case err == nil:
			s.saw(v.at)
			return append(v.since, fresh...), nil
		case errors.Is(err, errBehind):
			if err := s.catchUp(ctx, v); err != nil {
				return nil, err
			}
		case !errors.As(err, &more):
			return nil, err
		case try == retries:
			return nil, fmt.Errorf("%w; tried %d times", more.error, retries+1)
		default:
			try++
			wait(ctx, pause.NextBackOff())
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// catchUp reads what is far behind, page by page, without a lock.
func (s *Store) catchUp(ctx context.Context, v *view) error {
	_, err := ledger.Walk(ctx, s.Reader, v.at, v.take)
	return s.fault(ctx, "read", err)
}

// attempt is one transaction. Its connection is given back at the end; with the
// transaction open, as after a panic of plan, it is closed, which rolls back.
func (s *Store) attempt(ctx context.Context, v *view, plan ledger.Plan) ([]ledger.Entry, error) {
	conn, err := s.writes.Acquire(ctx)
	if err != nil {
		return nil, s.fault(ctx, "connect", err)
	}
	defer conn.Release()
	own, cancel := context.WithTimeoutCause(ctx, s.answers, errSilent)
	defer cancel()
	fresh, id, err := s.write(own, conn.Conn(), v, plan)
	if err == nil && len(fresh) > 0 {
		// The last look at the caller: a commit that has begun is seen through.
		if err = ctx.Err(); err == nil {
			return fresh, s.commit(ctx, conn.Conn(), fresh[len(fresh)-1], id)
		}
	}
	rollback(ctx, conn.Conn())
	return nil, err
}

// rollback ends a transaction for the next one on the connection. If it fails
// the connection is closed, to the same effect.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectsIn)
	defer cancel()
	_, _ = conn.Exec(own, `ROLLBACK`)
}

// write does all but the commit. It returns the new entries and the id of the
// transaction.
func (s *Store) write(ctx context.Context, conn *pgx.Conn, v *view, plan ledger.Plan) (fresh []ledger.Entry, id string, err error) {
	at, err := s.lock(ctx, conn, v)
	if err != nil {
		return nil, "", s.before(ctx, conn, "read", err)
	}
	// A copy, so that what is returned is what was read.
	drafts, err := plan(append([]ledger.Entry(nil), v.since...))
	if err != nil || len(drafts) == 0 {
		return nil, "", err
	}
	at = ledger.Stamp(at, v.last, drafts)
	prev := v.at
	for _, d := range drafts {
		e, err := ledger.Link(prev, at, d)
		if err != nil {
			return nil, "", fmt.Errorf("ledger %s: %w", s.name, err)
		}
		fresh, prev = append(fresh, e), e.Position()
	}
	id, err = insert(ctx, conn, v.at, fresh, drafts)
	if err != nil {
		return nil, "", s.before(ctx, conn, "append", err)
	}
	return fresh, id, nil
}

// before sorts the failures before a commit: nothing was written, so whatever
// may pass is tried again, also a connection that died.
func (s *Store) before(ctx context.Context, conn *pgx.Conn, what string, err error) error {
	if errors.Is(err, errBehind) {
		return err
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return explain(s.name, what, errSilent)
	}
	err = s.fault(ctx, what, err)
	if ctx.Err() == nil && (contended(code(err)) || conn.IsClosed()) {
		return again{err}
	}
	return err
}

var errSilent = errors.New("the server does not answer; look whether it hangs")

// lock begins the transaction, locks the head and reads the entries up to it.
// It returns the server's time.
func (s *Store) lock(ctx context.Context, conn *pgx.Conn, v *view) (at time.Time, err error) {
	var head ledger.Position
	var es []ledger.Entry
	// One round trip. Each statement sees what was committed when it began, hence
	// all that was appended before the lock was given.
	b := &pgx.Batch{}
	b.Queue(begin)
	b.Queue(`SELECT seq, hash FROM ledger_head FOR UPDATE`).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&head.Seq, &head.Hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNoHead
		}
		return err
	})
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&at) })
	b.Queue(columns+`WHERE seq >= $1 ORDER BY seq LIMIT $2`, v.at.Seq, near).Query(func(rows pgx.Rows) (err error) {
		es, err = pgx.CollectRows(rows, scan)
		return err
	})
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return at, err
	}
	if err := s.follow(v, head, es); err != nil {
		return at, err
	}
	return at.UTC().Truncate(ledger.Resolution), nil
}

// follow verifies that the entries, the first of which is the one at the view's
// position, lead to the head: a state that was folded from another chain, or
// tables that somebody else wrote to, are refused.
func (s *Store) follow(v *view, head ledger.Position, es []ledger.Entry) error {
	if known := max(v.at.Seq, s.newest().Seq); head.Seq < known {
		return fmt.Errorf("%w: it ends at entry %d, entry %d was read before; was an older copy restored?", ledger.ErrCorrupt, head.Seq, known)
	}
	full := len(es) == near
	if v.at.Seq > 0 {
		if len(es) == 0 || es[0].Position() != v.at {
			return fmt.Errorf("%w: entry %d is not the one of the state", ledger.ErrCorrupt, v.at.Seq)
		}
		if err := ledger.Verify(ledger.Position{Seq: v.at.Seq - 1, Hash: es[0].Prev}, es[0]); err != nil {
			return err
		}
		v.last, es = es[0].Time, es[1:]
	}
	for _, e := range es {
		if err := v.take(e); err != nil {
			return err
		}
	}
	switch {
	case v.at == head:
		return nil
	case full && v.at.Seq < head.Seq:
		return errBehind
	}
	return fmt.Errorf("%w: its head is entry %d, its last one is %d", ledger.ErrCorrupt, head.Seq, v.at.Seq)
}

// insert writes entries and blobs, moves the head and tells the others, in one
// round trip, and returns the transaction's id.
func insert(ctx context.Context, conn *pgx.Conn, prev ledger.Position, es []ledger.Entry, ds []ledger.Draft) (id string, err error) {
	b := &pgx.Batch{}
	for i, e := range es {
		b.Queue(insertEntry, values(e)...)
		for _, blob := range ds[i].Blobs {
			digest := ledger.BlobDigest(blob)
			b.Queue(`INSERT INTO blobs (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING`, digest, append([]byte{}, blob...))
			b.Queue(`INSERT INTO entry_blobs (seq, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING`, e.Seq, digest)
		}
		if drop := ds[i].Drop; len(drop) > 0 {
			b.Queue(`DELETE FROM entry_blobs WHERE digest = ANY ($1)`, drop)
			b.Queue(`DELETE FROM blobs WHERE digest = ANY ($1)`, drop)
		}
	}
	head := es[len(es)-1].Position()
	b.Queue(setHead, head.Seq, head.Hash, prev.Seq, prev.Hash).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return errNoHead
		}
		return nil
	})
	b.Queue(`NOTIFY ` + channel)
	b.Queue(`SELECT pg_current_xact_id()::xid::text`).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	return id, taken(conn.SendBatch(ctx, b).Close(), es)
}

// taken names the entry whose unique name exists.
func taken(err error, es []ledger.Entry) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != codeUnique {
		return err
	}
	if e.ConstraintName != "entries_unique_name" {
		return fmt.Errorf("%w: somebody else wrote to its tables: %w", ledger.ErrCorrupt, err)
	}
	for _, entry := range es {
		if entry.Unique != "" && e.Detail == fmt.Sprintf("Key (unique_name)=(%s) already exists.", entry.Unique) {
			return fmt.Errorf("%s: %w", entry.Unique, ledger.ErrExists)
		}
	}
	return fmt.Errorf("a unique name: %w", ledger.ErrExists)
}

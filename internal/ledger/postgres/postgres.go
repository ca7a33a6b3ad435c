// Package postgres keeps a ledger in a PostgreSQL database. It takes drafts and
// gives back entries that are on the server's disk, in the order of their
// chain, from any number of writers at once: one row, the head, is locked by
// whoever appends, so that there is one chain and one append at a time.
//
// Everything rests on sessions that are ours alone (row and advisory locks,
// timeouts, LISTEN), so a pooler that hands one session to several clients must
// not stand between. Bodies are kept as bytes: jsonb would give back other
// bytes than were hashed. People read them with convert_from(body, 'UTF8').
package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Store is a writer of a ledger, one of any number. It is safe for concurrent
// use.
type Store struct {
	*Reader
	// writes holds one connection: the appends of a process wait here, in turn,
	// and not each with a connection on the head.
	writes *pgxpool.Pool
	here   *presence
	// answers is how long a try of an append may take, ask how long it is tried
	// to find out whether a commit happened.
	answers, ask time.Duration

	mu sync.Mutex
	// seen is the newest entry that this writer knows to be durable.
	seen ledger.Position
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger for writing and verifies its chain since the newest
// checkpoint. It refuses a missing ledger (ErrMissing), one whose chain is
// broken (ErrCorrupt), and a server that may forget what it acknowledged.
func Open(ctx context.Context, dsn string) (*Store, error) {
	r, err := OpenReader(ctx, dsn)
	if err != nil {
		return nil, err
	}
	s := &Store{Reader: r, answers: answersIn, ask: askFor}
	if err := s.open(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	cfg := s.cfg.Copy()
	cfg.MaxConns = 1
	cfg.AfterConnect = durable
	var err error
	if s.writes, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return s.fault(ctx, "open", err)
	}
	if err := s.writes.Ping(ctx); err != nil {
		return s.fault(ctx, "open", err)
	}
	if err := s.verifyEnd(ctx); err != nil {
		return err
	}
	s.here, err = enter(ctx, s.cfg.ConnConfig)
	return s.fault(ctx, "open", err)
}

// verifyEnd goes over the links since the newest checkpoint, so that a start
// takes no longer as the chain grows. What is before it is verified by
// ledger.Audit and by Verify.
func (s *Store) verifyEnd(ctx context.Context) error {
	// In this order: the head is not before the checkpoint's entry then.
	c, err := ledger.NewestCheckpoint(ctx, s.Reader)
	if err != nil {
		return s.fault(ctx, "verify", err)
	}
	s.seen, _, err = s.chain(ctx, c.At, nil)
	return err
}

// saw notes what was read or written.
func (s *Store) saw(p ledger.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Seq > s.seen.Seq {
		s.seen = p
	}
}

func (s *Store) newest() ledger.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Clock is the server's clock, which all replicas share.
func (r *Reader) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	if err := r.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return time.Time{}, r.fault(ctx, "read clock", err)
	}
	return now.UTC(), nil
}

// Lone reports whether no other writer was connected when this one opened.
func (s *Store) Lone() bool { return s.here.lone }

// Hints gets a value after somebody appended, once for any number of appends.
// It is no more than a hint: one may be lost with a connection, and one is given
// whenever that was made again.
func (s *Store) Hints() <-chan struct{} { return s.here.hints }

// Close waits for a running append and ends all connections.
func (s *Store) Close() error {
	s.release()
	return nil
}

func (s *Store) release() {
	if s.writes != nil {
		s.writes.Close()
	}
	if s.here != nil {
		s.here.leave()
	}
	s.pool.Close()
}

// durable makes sure, on every connection that writes, of what a claim rests
// on: an entry that the server forgets after a power cut is a second effect.
func durable(ctx context.Context, conn *pgx.Conn) error {
	var fsync, pages, commit string
	var standby bool
	err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), pg_is_in_recovery()`).Scan(&fsync, &pages, &commit, &standby)
	if err != nil {
		return err
	}
	switch {
	case standby:
		return fmt.Errorf("the server is a standby, which takes no writes; name the primary in the DSN")
	case fsync != "on":
		return fmt.Errorf("the server runs with fsync %s and may forget what it acknowledged; set fsync = on in postgresql.conf and reload", fsync)
	case pages != "on":
		return fmt.Errorf("the server runs with full_page_writes %s and may damage what it wrote in a power cut; set full_page_writes = on in postgresql.conf and reload", pages)
	case commit == "off" || commit == "local":
		// Whatever the role or the database is set to: these wait for less than
		// the disks that the administrator asked to wait for.
		if _, err := conn.Exec(ctx, `SET synchronous_commit = on`); err != nil {
			return err
		}
	}
	return nil
}

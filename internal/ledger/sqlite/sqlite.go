// Package sqlite keeps a ledger in one SQLite file. It takes drafts and gives
// back entries that are on the disk, in the order of their chain, from exactly
// one writer; readers work beside it.
//
// The file is <path>, with SQLite's own <path>-wal and <path>-shm, and
// <path>.lock, whose OS lock the writer holds for life. WAL needs a local file
// system; on a network file system neither it nor the lock can be trusted, so
// those that the system names as such are refused.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Options are what a writer needs from outside.
type Options struct {
	// Now is the clock that stamps entries; time.Now when nil. A clock that
	// steps back stops the stamps, it does not turn them back.
	Now func() time.Time
}

// Store is the one writer of a ledger. It is safe for concurrent use.
type Store struct {
	*Reader
	conn *sql.Conn
	// writes closes last, after its only connection.
	writes *sql.DB
	lock   *os.File
	file   os.FileInfo
	// wal is SQLite's log beside it, where what was appended last is.
	wal os.FileInfo
	now func() time.Time
	// turn holds one token: appends are one at a time.
	turn   chan struct{}
	closed bool
	// failed is set once the disk failed in a commit. After that nobody knows
	// what a later fsync that succeeds would mean, so none is tried.
	failed error
	head   ledger.Position
	last   time.Time
}

var _ ledger.Store = (*Store)(nil)

// Open opens a ledger for writing and verifies its chain from the newest
// checkpoint on. It refuses a missing ledger (ErrMissing), one with a writer
// (ErrLocked), one whose chain is broken (ErrCorrupt), and one on a network file
// system.
func Open(path string, opts Options) (*Store, error) {
	file, err := usable(path)
	if err != nil {
		return nil, err
	}
	if err := local(path); err != nil {
		return nil, err
	}
	s := &Store{file: file, now: opts.Now, turn: make(chan struct{}, 1)}
	if s.now == nil {
		s.now = time.Now
	}
	if s.lock, err = lock(path); err != nil {
		return nil, err
	}
	if err := s.open(path); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Store) open(path string) error {
	ctx := context.Background()
	var err error
	if s.writes, err = connect(path, false); err != nil {
		return err
	}
	s.writes.SetMaxOpenConns(1)
	if s.conn, err = s.writes.Conn(ctx); err != nil {
		return explain(path, "open", err)
	}
	if err := known(ctx, s.conn, path); err != nil {
		return err
	}
	if err := s.durable(ctx, path); err != nil {
		return err
	}
	if s.Reader, err = newReader(path); err != nil {
		return err
	}
	if s.wal, err = os.Lstat(path + "-wal"); err != nil {
		return fmt.Errorf("ledger %s: its log: %w", path, err)
	}
	return s.verifyEnd(ctx)
}

// verifyEnd goes over the links since the newest checkpoint, so that a start
// takes no longer as the chain grows. What is before it is verified by
// ledger.Audit and by Verify.
func (s *Store) verifyEnd(ctx context.Context) error {
	c, err := ledger.NewestCheckpoint(ctx, s.Reader)
	if err != nil {
		return fmt.Errorf("ledger %s: %w", s.path, err)
	}
	s.head, s.last, err = s.chain(ctx, c.At, nil)
	return err
}

// Clock is the store's clock: the host's, or the newest entry's time where the
// host's has stepped back behind it.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	if now := s.now(); !now.Before(s.last) {
		return now, nil
	}
	return s.last, nil
}

// durable makes sure of what a claim rests on instead of hoping that a pragma
// took effect.
func (s *Store) durable(ctx context.Context, path string) error {
	var mode string
	if err := s.conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return explain(path, "open", err)
	}
	var sync int
	if err := s.conn.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&sync); err != nil {
		return explain(path, "open", err)
	}
	if mode != "wal" || sync != 2 {
		return fmt.Errorf("ledger %s: SQLite gives journal mode %s and synchronous %d instead of wal and 2; is it on a network file system?", path, mode, sync)
	}
	return nil
}

// Close waits for a running append, ends writing and releases the lock.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.release()
}

// release ends whatever was opened; the lock last, when nothing can write any
// more.
func (s *Store) release() error {
	var errs []error
	if s.Reader != nil {
		errs = append(errs, s.Reader.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writes != nil {
		errs = append(errs, s.writes.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

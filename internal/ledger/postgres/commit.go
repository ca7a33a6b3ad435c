package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

const (
	// commitsIn is longer than a disk that is merely slow takes.
	commitsIn = 15 * time.Second
	// askFor is longer than a session that was cut off keeps the head, and long
	// enough for a restart of the server.
	askFor = 20 * time.Second
)

// commit commits on a context of its own: a caller that hangs up must not leave
// open whether its claim exists. An error means that nothing was written, unless
// it is ErrUnknown.
func (s *Store) commit(ctx context.Context, conn *pgx.Conn, last ledger.Entry, id string) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitsIn)
	defer cancel()
	tag, err := conn.Exec(own, `COMMIT`)
	switch {
	case err == nil && tag.String() == "COMMIT":
	case err == nil:
		return explain(s.name, "commit", errors.New("the server rolled back; nothing was written"))
	default:
		// Whatever the error says, the answer of a commit is in the table.
		if err := s.settle(context.WithoutCancel(ctx), last, id, err); err != nil {
			return err
		}
	}
	s.saw(last.Position())
	return nil
}

// settle finds out whether a commit happened whose answer was lost.
func (s *Store) settle(ctx context.Context, last ledger.Entry, id string, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, s.ask)
	defer cancel()
	pause := &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: time.Second}
	pause.Reset()
	for {
		written, err := s.look(ctx, last, id)
		switch {
		case err == nil && written:
			return nil
		case err == nil:
			err = explain(s.name, "commit", fmt.Errorf("nothing was written: %w", lost))
			// The NOTIFY of any program on the server locks out that of all others
			// until its commit is done: ours may have waited too long.
			if contended(code(lost)) {
				return again{err}
			}
			return err
		case errors.Is(err, ErrUnknown) || ctx.Err() != nil:
			return explain(s.name, "commit", fmt.Errorf("%w up to entry %d; the next append tells: %w; asked again: %w",
				ErrUnknown, last.Seq, cause(lost), cause(err)))
		}
		wait(ctx, pause.NextBackOff())
	}
}

// look asks on a new connection. The head's lock comes first: the lost
// transaction held it, so once it is ours that one is over, and no commit that
// was still under way can follow what is read here.
func (s *Store) look(ctx context.Context, last ledger.Entry, id string) (written bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, s.cfg.ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() { _ = hangUp(conn) }()
	var hash, by string
	b := &pgx.Batch{}
	b.Queue(begin)
	b.Queue(`SELECT FROM ledger_head FOR UPDATE`)
	b.Queue(`SELECT hash, xmin::text FROM entries WHERE seq = $1`, last.Seq).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&hash, &by); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	b.Queue(`ROLLBACK`)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return false, err
	}
	switch {
	case hash != last.Hash:
		return false, nil
	case by != id:
		// The same entry by another transaction: another replica's, or ours on a
		// server that was copied by other means than its log.
		return false, fmt.Errorf("%w: entry %d was written by another transaction", ErrUnknown, last.Seq)
	}
	return true, nil
}

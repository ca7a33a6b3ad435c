package postgres

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

const (
	// channel is what every append notifies. It is the database's, not the
	// ledger's: another ledger in it gives hints too many.
	channel = "setpoint_ledger"
	// lockClass is the first key of our advisory locks; the second is the
	// ledger's table of the head, so that ledgers in one database do not meet.
	lockClass = 0x5e79
)

// presence is the connection by which writers know of each other: it holds an
// advisory lock and listens, for life.
type presence struct {
	lone  bool
	hints chan struct{}
	end   context.CancelFunc
	ended chan struct{}
}

// enter takes the lock, shared, and reports whether nobody had it. Whoever holds
// it alone for a moment is the first; the others' try fails, as it should.
func enter(ctx context.Context, cfg *pgx.ConnConfig) (*presence, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &presence{hints: make(chan struct{}, 1), ended: make(chan struct{})}
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, 'ledger_head'::regclass::oid::int)`, lockClass).Scan(&p.lone)
	if err == nil {
		err = join(ctx, conn)
	}
	if err == nil && p.lone {
		// The shared one is held already: nobody gets in between.
		_, err = conn.Exec(ctx, `SELECT pg_advisory_unlock($1, 'ledger_head'::regclass::oid::int)`, lockClass)
	}
	if err != nil {
		_ = hangUp(conn)
		return nil, err
	}
	var own context.Context
	own, p.end = context.WithCancel(context.WithoutCancel(ctx))
	go p.stay(own, cfg, conn)
	return p, nil
}

func join(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1, 'ledger_head'::regclass::oid::int)`, lockClass); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `LISTEN `+channel)
	return err
}

// stay passes on what is heard and comes back whenever the connection is lost.
func (p *presence) stay(ctx context.Context, cfg *pgx.ConnConfig, conn *pgx.Conn) {
	defer close(p.ended)
	for {
		for conn != nil {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				part(conn)
				break
			}
			p.hint()
		}
		if conn = rejoin(ctx, cfg); conn == nil {
			return
		}
		// Whatever was appended meanwhile was not heard.
		p.hint()
	}
}

// part lets go of the lock and closes the connection. The server does the former
// by itself, but some time after the latter; who opens next must not take us
// for another writer.
func part(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), connectsIn)
	defer cancel()
	if !conn.IsClosed() {
		_, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock_all()`)
	}
	_ = conn.Close(ctx)
}

// hint does not wait: one that was not taken yet says the same.
func (p *presence) hint() {
	select {
	case p.hints <- struct{}{}:
	default:
	}
}

// rejoin tries until it succeeds or the store is closed; then it gives nil.
func rejoin(ctx context.Context, cfg *pgx.ConnConfig) *pgx.Conn {
	pause := &backoff.ExponentialBackOff{InitialInterval: 100 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 10 * time.Second}
	pause.Reset()
	for ctx.Err() == nil {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			if err = join(ctx, conn); err == nil {
				return conn
			}
			_ = hangUp(conn)
		}
		wait(ctx, pause.NextBackOff())
	}
	return nil
}

// leave ends the connection.
func (p *presence) leave() {
	p.end()
	<-p.ended
}

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
)

// waiting counts the sessions that wait for a lock in a database.
func waiting(t testing.TB, conn *pgx.Conn) error {
	var n int
	err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&n)
	if err == nil && n == 0 {
		err = errors.New("nobody waits for a lock")
	}
	return err
}

// TestLostAnswer cuts the connection at a commit: what the store says is what
// is in the ledger.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		// written is whether the server got the commit.
		written bool
		do      func(t *testing.T, dsn string, p *proxy, l link, forward func())
		text    string
	}{
		"before": {"the server never got it", false, func(_ *testing.T, _ string, _ *proxy, l link, _ func()) { l.cut() },
			"nothing was written"},
		"after": {"the answer is lost", true, func(_ *testing.T, _ string, _ *proxy, l link, forward func()) {
			_ = l.client.Close()
			forward()
		}, ""},
		"late": {"the network still has it while the store asks", true, func(t *testing.T, dsn string, _ *proxy, l link, forward func()) {
			_ = l.client.Close()
			conn, err := pgx.Connect(t.Context(), dsn)
			check(t, err)
			eventually(t, func() error { return waiting(t, conn) })
			check(t, conn.Close(t.Context()))
			forward()
		}, ""},
		"unknown": {"nobody can be asked", true, func(_ *testing.T, _ string, p *proxy, l link, forward func()) {
			_ = p.listener.Close()
			forward()
			_ = l.client.Close()
		}, "whether the entries were written is unknown"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := newLedger(t)
			p, through := newProxy(t, dsn)
			s := openLedger(t, through)
			if name == "unknown" {
				s.AskFor(300 * time.Millisecond)
			}
			p.next(func(l link, forward func()) { tt.do(t, dsn, p, l, forward) })
			es, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(ledgertest.Gap("lost")))
			if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: got %v, want %q", tt.reason, err, tt.text)
			}
			if errors.Is(err, postgres.ErrUnknown) != (name == "unknown") {
				t.Errorf("%s: got %v", tt.reason, err)
			}
			want := 1
			if tt.written {
				want = 2
			}
			if err == nil && len(es) != want {
				t.Errorf("append gave %d entries, want %d", len(es), want)
			}
			other := openLedger(t, dsn)
			eventually(t, func() error {
				es, err := other.Read(t.Context(), 0, 10)
				if err == nil && len(es) != want {
					err = fmt.Errorf("%s: the ledger holds %d entries, want %d", tt.reason, len(es), want)
				}
				return err
			})
			if name == "unknown" {
				return
			}
			if es := grow(t, s, 1); len(es) != want+1 {
				t.Errorf("afterwards: %d entries, want %d", len(es), want+1)
			}
		})
	}
}

// TestAnotherWroteTheSame: the same entry by another transaction is not taken
// for the lost one.
func TestAnotherWroteTheSame(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	p, through := newProxy(t, dsn)
	s := openLedger(t, through)
	other := connected(t, dsn)
	var last ledger.Position
	var at time.Time
	p.next(func(l link, _ func()) {
		defer l.cut()
		// Nobody asks before the other has written what the lost one did.
		p.mu.Lock()
		defer p.mu.Unlock()
		_, err := other.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
			WHERE state = 'idle in transaction' AND datname = current_database()`)
		check(t, err)
		e, err := ledger.Link(last, at, ledgertest.Gap("same"))
		check(t, err)
		insertRaw(t, other, e)
	})
	first, err := s.Read(t.Context(), 0, 1)
	check(t, err)
	last, at = first[0].Position(), first[0].Time.Add(time.Hour)
	// A clock that does not move: the newest entry's time is ahead of it.
	e, err := ledger.Link(last, at, ledgertest.Gap("ahead"))
	check(t, err)
	insertRaw(t, other, e)
	last = e.Position()
	if _, err := s.Append(t.Context(), e.Position(), ledgertest.Drafts(ledgertest.Gap("same"))); !errors.Is(err, postgres.ErrUnknown) {
		t.Errorf("got %v, want %v", err, postgres.ErrUnknown)
	}
	// Nor does a clock behind the newest entry turn the times back.
	if es := grow(t, s, 1); !es[len(es)-1].Time.Equal(at) {
		t.Errorf("after an entry of %s came one of %s", at, es[len(es)-1].Time)
	}
}

// connected is a connection of a stranger.
func connected(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, conn.Close(context.Background())) })
	return conn
}

func insertRaw(t testing.TB, conn *pgx.Conn, e ledger.Entry) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `INSERT INTO entries VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Seq, e.Prev, e.Hash, e.Time.Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique, []byte(e.Body))
	check(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE ledger_head SET seq = $1, hash = $2`, e.Seq, e.Hash)
	check(t, err)
}

// TestHungUpInCommit: a commit that has begun is seen through.
func TestHungUpInCommit(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, newLedger(t))
	s := openLedger(t, through)
	before := p.connections()
	ctx, cancel := context.WithCancel(t.Context())
	p.next(func(_ link, forward func()) {
		cancel()
		// Time for a client that gives up to do so.
		<-time.After(50 * time.Millisecond)
		forward()
	})
	es, err := s.Append(ctx, ledger.Position{}, ledgertest.Drafts(ledgertest.Gap("hung up")))
	if err != nil || len(es) != 2 || ctx.Err() == nil {
		t.Errorf("%d entries, %v, want 2 and no error", len(es), err)
	}
	if n := p.connections(); n != before {
		t.Errorf("%d connections were made to find out", n-before)
	}
}

// TestHungUpCallers: callers that hang up at any moment of an append leave a
// ledger that the next one can write, and know whether theirs was written.
func TestHungUpCallers(t *testing.T) {
	t.Parallel()
	s := openLedger(t, newLedger(t))
	written := 0
	for i := range 150 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		_, err := s.Append(ctx, ledger.Position{}, ledgertest.Drafts(ledgertest.Gap("test")))
		cancel()
		switch {
		case err == nil:
			written++
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("caller %d got %v", i, err)
		}
	}
	es := grow(t, s, 1)
	if len(es) != written+2 {
		t.Errorf("the ledger holds %d entries, %d were acknowledged", len(es)-2, written)
	}
	if _, err := ledger.Fold(es); err != nil {
		t.Errorf("the chain does not fold: %v", err)
	}
}

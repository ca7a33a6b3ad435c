package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
)

const writers = 64

// BenchmarkClaims64 compares 64 writers that append one unique entry each with
// as many bare commits of one row, on one connection and on 64, in turn in one
// run. Appends are one at a time, each with its own wait for the disk, so the
// first ratio is what Setpoint adds, and the second what one chain costs: bare
// commits on many connections share their waits.
func BenchmarkClaims64(b *testing.B) {
	dsn := newLedger(b)
	s := openLedger(b, dsn)
	raw(b, dsn, `CREATE TABLE bare (name TEXT PRIMARY KEY, body BYTEA)`)
	conns := make([]*pgx.Conn, writers)
	for i := range conns {
		conns[i] = connected(b, dsn)
	}
	insert := func(conn *pgx.Conn, round, i int, how string) error {
		_, err := conn.Exec(context.Background(), `INSERT INTO bare VALUES ($1, $2)`, fmt.Sprint(how, "/", round, "/", i), []byte(`{"why":"claim"}`))
		return err
	}
	// Every session prepares its statement.
	for i, conn := range conns {
		check(b, insert(conn, -1, i, "first"))
	}
	at := grow(b, s, 1)[1].Position()
	var ours, one, many time.Duration
	for round := 0; b.Loop(); round++ {
		ours += together(b, func(i int) error {
			d := ledgertest.Gap("claim")
			d.Unique = fmt.Sprint("claim/", round, "/", i)
			_, err := s.Append(context.Background(), at, ledgertest.Drafts(d))
			return err
		})
		es, err := s.Append(b.Context(), at, func([]ledger.Entry) ([]ledger.Draft, error) { return nil, nil })
		check(b, err)
		at = es[len(es)-1].Position()
		begin := time.Now()
		for i := range writers {
			check(b, insert(conns[0], round, i, "one"))
		}
		one += time.Since(begin)
		many += together(b, func(i int) error { return insert(conns[i], round, i, "many") })
	}
	b.ReportMetric(float64(ours)/float64(one), "claims/commits")
	b.ReportMetric(float64(ours)/float64(many), "claims/shared-commits")
	b.ReportMetric(float64(writers)*float64(b.N)/ours.Seconds(), "claims/s")
}

// together runs all writers at once and gives how long they took.
func together(b *testing.B, do func(i int) error) time.Duration {
	b.Helper()
	errs := make([]error, writers)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		check(b, err)
	}
	return took
}

package postgres_test

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// database is an empty database of the test's own.
func database(t testing.TB) string {
	t.Helper()
	s := pgtest.Start(t)
	name := strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))
	dsn, err := s.Database(name)
	check(t, err)
	return dsn
}

// newLedger makes an empty ledger in its own database and returns its DSN.
func newLedger(t testing.TB) string {
	t.Helper()
	dsn := database(t)
	check(t, postgres.Init(t.Context(), dsn, "os:test"))
	return dsn
}

func openLedger(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

// raw runs SQL as no setpoint would.
func raw(t testing.TB, dsn, query string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), query)
	check(t, err)
}

// ledgers makes empty ledgers, each in a schema of one database, which is made
// faster than a database.
func ledgers(t testing.TB) func(t testing.TB) (dsn string) {
	t.Helper()
	dsn := database(t)
	var n atomic.Int64
	return func(t testing.TB) string {
		t.Helper()
		schema := fmt.Sprint("l", n.Add(1))
		raw(t, dsn, "CREATE SCHEMA "+schema)
		dsn := dsn + "&search_path=" + schema
		check(t, postgres.Init(t.Context(), dsn, "os:test"))
		return dsn
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	fresh := ledgers(t)
	// Each check is a new ledger with some dozens of commits on a real disk.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		check(t, checks.Value.Set("6"))
		defer func() { check(t, checks.Value.Set(checks.DefValue)) }()
	}
	ledgertest.Run(t, func(t *testing.T) func() ledger.Store {
		dsn := fresh(t)
		return func() ledger.Store {
			s, err := postgres.Open(t.Context(), dsn)
			check(t, err)
			return s
		}
	})
}

package faultproxy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

// A real database between the two: whether a transaction happened and whether
// its client heard of it are two things.
func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.DSN("postgres")
	straight, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = straight.Close(context.Background()) }()
	if _, err := straight.Exec(t.Context(), "drop table if exists faultproxy_test; create table faultproxy_test (name text primary key)"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason         string
		heard, happens bool
	}{
		"pass":                         {"nothing is changed", true, true},
		"slow-request,delay=1us":       {"slow is not lost", true, true},
		"cut-reply,match=commit":       {"committed, and nobody was told", false, true},
		"cut-reply,match=commit,fin":   {"in order", false, true},
		"cut-request,match=commit":     {"never asked to commit", false, false},
		"blackhole,match=commit":       {"the network is gone before the commit", false, false},
		"cut-request,match=insert":     {"never asked at all", false, false},
		"cut-reply,bytes=1,match=comm": {"one byte is no answer", false, true},
	}
	for fault, tc := range cases {
		t.Run(fault, func(t *testing.T) {
			p := proxy(t, server.Addr(), faultproxy.Options{})
			set(t, p, fault)
			// The name must not hold the text that the fault waits for.
			name := strings.ToUpper(fault)
			heard := insert(t, strings.Replace(dsn, server.Addr(), p.Addr(), 1), name) == nil
			if heard != tc.heard {
				t.Errorf("%s: heard of the commit: %t", tc.reason, heard)
			}
			p.Cut()
			var n int
			if err := straight.QueryRow(t.Context(), "select count(*) from faultproxy_test where name = $1", name).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if happened := n == 1; happened != tc.happens {
				t.Errorf("%s: committed: %t", tc.reason, happened)
			}
		})
	}
}

// insert adds one name in a transaction of its own.
func insert(t *testing.T, dsn, name string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into faultproxy_test values ($1)", name); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

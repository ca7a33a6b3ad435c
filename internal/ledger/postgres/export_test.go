package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Session is a connection with the settings of ours.
func Session(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	cfg, _, err := parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// AskFor bounds how long a store asks whether a commit happened.
func (s *Store) AskFor(d time.Duration) { s.ask = d }

// AnswersIn bounds a try of an append.
func (s *Store) AnswersIn(d time.Duration) { s.answers = d }

// Ask runs SQL on the connection that writes and gives its one value.
func (s *Store) Ask(t testing.TB, query string) string {
	t.Helper()
	var value string
	if err := s.writes.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

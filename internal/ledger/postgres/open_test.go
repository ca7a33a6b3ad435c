package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres/pgtest"
)

func grow(t testing.TB, s *postgres.Store, n int) []ledger.Entry {
	t.Helper()
	var ds []ledger.Draft
	for i := range n {
		ds = append(ds, ledgertest.Gap(fmt.Sprint(i)))
	}
	es, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(ds...))
	check(t, err)
	return es
}

// grown lengthens a ledger by n entries.
func grown(t testing.TB, dsn string, n int) []ledger.Entry {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn)
	check(t, err)
	es := grow(t, s, n)
	check(t, s.Close())
	return es
}

// tamper changes entries behind the back of the triggers.
func tamper(t testing.TB, dsn, query string) {
	t.Helper()
	raw(t, dsn, "ALTER TABLE entries DISABLE TRIGGER ALL; "+query+"; ALTER TABLE entries ENABLE TRIGGER ALL")
}

func TestInit(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = postgres.Init(t.Context(), dsn, "os:test") })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, ledger.ErrExists):
			t.Errorf("one of several inits gave %v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d inits made the ledger", made)
	}
	r, err := postgres.OpenReader(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, r.Close()) }()
	es, err := r.Read(t.Context(), 0, 10)
	if err != nil || len(es) != 1 {
		t.Fatalf("a new ledger holds %v, %v", es, err)
	}
	body, err := ledger.Decode(es[0])
	if err != nil || body != (ledger.Init{Version: ledger.Version, By: "os:test"}) || time.Since(es[0].Time).Abs() > time.Minute {
		t.Errorf("the first entry is %+v at %s, %v", body, es[0].Time, err)
	}
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	dsn := database(t)
	raw(t, dsn, "CREATE TABLE blobs (x int)")
	if err := postgres.Init(t.Context(), dsn, "os:test"); !errors.Is(err, ledger.ErrExists) || !strings.Contains(err.Error(), "a database of its own") {
		t.Errorf("beside another's table: %v", err)
	}
	raw(t, dsn, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
	if err := postgres.Init(t.Context(), s.DSN("latin"), "os:test"); err == nil || !strings.Contains(err.Error(), "ENCODING 'UTF8'") {
		t.Errorf("in LATIN1: %v", err)
	}
	raw(t, s.DSN("latin"), "CREATE ROLE visitor LOGIN")
	visitor := strings.Replace(s.DSN("latin"), pgtest.User+"@", "visitor@", 1)
	if err := postgres.Init(t.Context(), strings.Replace(visitor, "/latin", "/postgres", 1), "os:test"); err == nil || !strings.Contains(err.Error(), "lacks a permission") {
		t.Errorf("without permission: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	const drop = "DROP TABLE ledger_head, entry_blobs, blobs, entries, ledger_schema"
	tests := map[string]struct {
		reason string
		spoil  func(t *testing.T, dsn string)
		want   error
		text   string
	}{
		"missing":    {"a lost ledger is not an empty one", func(t *testing.T, dsn string) { raw(t, dsn, drop) }, ledger.ErrMissing, "`setpoint ledger init` creates one"},
		"half":       {"a table is gone", func(t *testing.T, dsn string) { raw(t, dsn, "DROP TABLE entry_blobs") }, nil, "some of a ledger's tables"},
		"newer":      {"a newer schema", func(t *testing.T, dsn string) { raw(t, dsn, "UPDATE ledger_schema SET version = 2") }, nil, "schema version 2, this setpoint knows 1"},
		"no first":   {"a chain without entries", changed("TRUNCATE entries CASCADE"), ledger.ErrCorrupt, "no first entry"},
		"body":       {"a changed body", changed(`UPDATE entries SET body = '{"why":"x"}' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4 was changed"},
		"space":      {"a body with one more space", changed(`UPDATE entries SET body = body || ' '::bytea WHERE seq = 4`), ledger.ErrCorrupt, "entry 4 was changed"},
		"time":       {"a changed time", changed(`UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4 was changed"},
		"no time":    {"a time that is none", changed(`UPDATE entries SET time = 'x' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4"},
		"dropped":    {"a dropped entry", changed(`DELETE FROM entries WHERE seq = 4`), ledger.ErrCorrupt, "entry 5 stands where 4 should"},
		"cut":        {"the end is gone", changed(`DELETE FROM entries WHERE seq = 6`), ledger.ErrCorrupt, "its head is entry 6, its last one is 5"},
		"head":       {"another head", changed(`UPDATE ledger_head SET hash = 'x'`), ledger.ErrCorrupt, "its head, entry 6, is not in it"},
		"headless":   {"no head", changed(`DELETE FROM ledger_head`), ledger.ErrCorrupt, "the row of its head is gone"},
		"beyond":     {"an entry after the head", changed(`INSERT INTO entries SELECT 7, hash, 'x', time, kind, service, '', body FROM entries WHERE seq = 6`), ledger.ErrCorrupt, "its head is entry 6, its last one is 7"},
		"checkpoint": {"what a checkpoint stands on was changed", nil, ledger.ErrCorrupt, "entry 3"},
	}
	fresh := ledgers(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := fresh(t)
			if tt.spoil == nil {
				withCheckpoint(t, dsn, 3)
				tt.spoil = changed(`UPDATE entries SET body = '{"why":"x"}' WHERE seq = 3`)
			}
			tt.spoil(t, dsn)
			s, err := postgres.Open(t.Context(), dsn)
			if err == nil {
				_ = s.Close()
				t.Fatalf("%s: it was opened", tt.reason)
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: got %v, want %v with %q", tt.reason, err, tt.want, tt.text)
			}
			if strings.Count(err.Error(), "postgres 127.0.0.1") != 1 {
				t.Errorf("%q does not name the ledger once", err)
			}
		})
	}
}

// changed is a change of a ledger of five further entries.
func changed(query string) func(*testing.T, string) {
	return func(t *testing.T, dsn string) {
		if r, err := postgres.OpenReader(t.Context(), dsn); err == nil {
			_, has, _ := r.Newest(t.Context(), ledger.KindCheckpoint)
			check(t, r.Close())
			if !has {
				grown(t, dsn, 5)
			}
		}
		tamper(t, dsn, query)
	}
}

// withCheckpoint makes a ledger with a checkpoint at an entry and one more.
func withCheckpoint(t testing.TB, dsn string, at int) (blob []byte) {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, s.Close()) }()
	state, err := ledger.Fold(grow(t, s, at-1))
	check(t, err)
	d, err := ledger.CheckpointDraft(state)
	check(t, err)
	_, err = s.Append(t.Context(), state.Head, ledgertest.Drafts(d, ledgertest.Gap("after")))
	check(t, err)
	return d.Blobs[0]
}

// TestOpenFromCheckpoint: what is before a checkpoint is not gone over at open,
// but by Verify.
func TestOpenFromCheckpoint(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	withCheckpoint(t, dsn, 4)
	s := openLedger(t, dsn)
	if rep, err := s.Verify(t.Context()); err != nil || rep.Entries != 6 {
		t.Errorf("before: %+v, %v", rep, err)
	}
	tamper(t, dsn, `UPDATE entries SET body = '{"why":"x"}' WHERE seq = 2`)
	openLedger(t, dsn)
	if _, err := s.Verify(t.Context()); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("a changed entry before the checkpoint gave %v", err)
	}
}

// TestCannotConnect also makes sure that no error has the password in it, in no
// form of a DSN.
func TestCannotConnect(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	s := pgtest.Start(t)
	raw(t, s.DSN("postgres"), "CREATE ROLE "+pgtest.GuardedRole+" LOGIN PASSWORD 'right'")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, closed.Close())
	at := func(addr, database string) string {
		return "postgres://" + pgtest.GuardedRole + ":" + canary + "@" + addr + "/" + database + "?sslmode=disable"
	}
	tests := map[string]struct{ dsn, text string }{
		"wrong password": {at(s.Addr(), "postgres"), "refuses the user or the password"},
		"unreachable":    {at(closed.Addr().String(), "postgres"), "the server cannot be reached"},
		"no database":    {strings.Replace(at(s.Addr(), "nowhere"), pgtest.GuardedRole+":"+canary, pgtest.User, 1), "the database does not exist"},
		"setting":        {s.DSN("postgres") + "&nosuchsetting=1", "PostgreSQL 14 or newer"},
		"empty":          {" \n", "the DSN is empty"},
		"slash":          {"postgres://u:" + canary + "/" + canary + "@" + s.Addr() + "/postgres", "cannot be read"},
		"digits, slash":  {"postgres://u:5432/" + canary + "@" + s.Addr() + "/postgres", "cannot be read"},
		"question mark":  {"postgres://u:" + canary + "?" + canary + "@" + s.Addr() + "/postgres", "refuses the user or the password"},
		"percent":        {"postgres://u:%zz" + canary + "@" + s.Addr() + "/postgres", "cannot be read"},
		"port":           {"postgres://u:" + canary + "@127.0.0.1:x/postgres", "cannot be read"},
		"sslmode":        {at(s.Addr(), "postgres") + "no", "cannot be read"},
		"keywords":       {"host=127.0.0.1 password='" + canary, "cannot be read"},
		"no DSN":         {canary, "cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, openErr := postgres.Open(t.Context(), tt.dsn)
			_, readErr := postgres.OpenReader(t.Context(), tt.dsn)
			for _, err := range []error{openErr, readErr, postgres.Init(t.Context(), tt.dsn, "os:test")} {
				if err == nil || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want one line with %q", err, tt.text)
				}
				secret(t, canary, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Open(ctx, s.DSN("postgres")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled open gave %v", err)
	}
}

// secret fails if an error, or one in it, holds a text.
func secret(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), text) {
		t.Errorf("%T gives the password away: %v", err, err)
	}
	secret(t, text, errors.Unwrap(err))
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range many.Unwrap() {
			secret(t, text, err)
		}
	}
}

// TestSettings: what keeps a hung replica from hanging all of them is in force,
// whatever the DSN and the role say.
func TestSettings(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn+"&lock_timeout=0&statement_timeout=0&application_name=mine")
	for name, want := range map[string]string{
		"idle_in_transaction_session_timeout": "5s", "lock_timeout": "10s", "statement_timeout": "30s", "idle_session_timeout": "0",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "10000",
		"client_encoding": "UTF8", "application_name": "mine",
	} {
		if got := s.Ask(t, "SHOW "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestDurable is not parallel: it changes the whole server.
func TestDurable(t *testing.T) {
	dsn := newLedger(t)
	system := func(query string) {
		conn, err := pgx.Connect(t.Context(), dsn)
		check(t, err)
		defer func() { check(t, conn.Close(t.Context())) }()
		_, err = conn.Exec(t.Context(), "ALTER SYSTEM "+query)
		check(t, err)
		_, err = conn.Exec(t.Context(), "SELECT pg_reload_conf()")
		check(t, err)
	}
	for _, setting := range []string{"fsync", "full_page_writes"} {
		system("SET " + setting + " = off")
		eventually(t, func() error {
			s, err := postgres.Open(t.Context(), dsn)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "set "+setting+" = on") {
				return fmt.Errorf("with %s off: %w", setting, err)
			}
			return nil
		})
		system("RESET " + setting)
		eventually(t, func() error {
			s, err := postgres.Open(t.Context(), dsn)
			if err == nil {
				err = s.Close()
			}
			return err
		})
	}
	for set, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_write": "remote_write"} {
		raw(t, dsn, "ALTER ROLE "+pgtest.User+" SET synchronous_commit = "+set)
		if got := openLedger(t, dsn).Ask(t, "SHOW synchronous_commit"); got != want {
			t.Errorf("where the role has synchronous_commit %s, the session has %s, want %s", set, got, want)
		}
	}
	raw(t, dsn, "ALTER ROLE "+pgtest.User+" RESET synchronous_commit")
}

// eventually waits for something that another process does.
func eventually(t testing.TB, what func() error) {
	t.Helper()
	check(t, patiently(what))
}

func patiently(what func() error) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := what()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
}

package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/postgres"
)

func hinted(t testing.TB, s *postgres.Store) {
	t.Helper()
	select {
	case <-s.Hints():
	case <-time.After(20 * time.Second):
		t.Fatal("no hint arrives")
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	a, b := openLedger(t, dsn), openLedger(t, dsn)
	for range 3 {
		grow(t, a, 2)
		hinted(t, a)
		hinted(t, b)
	}
	// What appends nothing gives none; any number that nobody took are one.
	_, err := a.Append(t.Context(), ledger.Position{}, ledgertest.Drafts())
	check(t, err)
	for range 5 {
		grow(t, a, 1)
	}
	hinted(t, b)
	if n := cap(b.Hints()); n != 1 {
		t.Errorf("%d hints are kept", n)
	}
}

// TestPresence: the first writer is alone, the next is not; after the first's
// connection was lost it is there again, and gives a hint for what it missed.
func TestPresence(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	r, err := postgres.OpenReader(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, r.Close()) }()
	open := func(want bool) *postgres.Store {
		s, err := postgres.Open(t.Context(), dsn)
		check(t, err)
		if s.Lone() != want {
			t.Errorf("lone %v, want %v", s.Lone(), want)
		}
		return s
	}
	a := open(true)
	b := open(false)
	check(t, a.Close())
	c := open(false)
	check(t, b.Close())
	check(t, c.Close())
	for range 5 {
		check(t, open(true).Close())
	}
	a = open(true)
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	holders := func() (n int) {
		check(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n))
		return n
	}
	if n := holders(); n != 1 {
		t.Errorf("%d advisory locks, want 1", n)
	}
	for range 2 {
		raw(t, dsn, `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
		hinted(t, a)
		eventually(t, func() error {
			if holders() != 1 {
				return errors.New("the lock is not taken again")
			}
			return nil
		})
		check(t, open(false).Close())
	}
	if !a.Lone() {
		t.Error("lone changed")
	}
	check(t, a.Close())
	if n := holders(); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	a, err := s.Clock(t.Context())
	check(t, err)
	at := grow(t, s, 1)[1].Time
	b, err := s.Clock(t.Context())
	check(t, err)
	if at.Before(a.Truncate(ledger.Resolution)) || at.After(b) || a.Location() != time.UTC {
		t.Errorf("an entry of %s between %s and %s", at, a, b)
	}
}

func TestAppendOnly(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	grow(t, s, 2)
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	for _, query := range []string{`UPDATE entries SET body = '' WHERE seq = 2`, `DELETE FROM entries WHERE seq = 3`, `TRUNCATE entries CASCADE`} {
		if _, err := conn.Exec(t.Context(), query); err == nil {
			t.Errorf("%s was taken", query)
		}
	}
}

func TestRestoredCopy(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	es := grow(t, s, 3)
	tamper(t, dsn, `DELETE FROM entries WHERE seq = 4; UPDATE ledger_head SET seq = 3, hash = (SELECT hash FROM entries WHERE seq = 3)`)
	// A writer that opens now knows no better; the state does.
	fresh := openLedger(t, dsn)
	for name, try := range map[string]struct {
		s     *postgres.Store
		after ledger.Position
	}{
		"the writer that wrote it":   {s, ledger.Position{}},
		"a state that was folded":    {fresh, es[3].Position()},
		"both":                       {s, es[3].Position()},
		"the entry that is gone, on": {s, es[2].Position()},
	} {
		if _, err := try.s.Append(t.Context(), try.after, ledgertest.Drafts()); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", name, err, ledger.ErrCorrupt)
		}
	}
}

// TestFarBehind: a state that is further behind than is read under the lock.
func TestFarBehind(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	want := grow(t, s, 2500)
	for _, at := range []int{-1, 0, 1, 498, 499, 500, 1499, 1500, 1501, 2500} {
		var after ledger.Position
		if at >= 0 {
			after = want[at].Position()
		}
		es, err := s.Append(t.Context(), after, ledgertest.Drafts())
		if err != nil || len(es) != len(want)-at-1 || len(es) > 0 && es[len(es)-1].Position() != want[2500].Position() {
			t.Errorf("after entry %d: %d entries, %v, want %d", after.Seq, len(es), err, len(want)-at-1)
		}
	}
	if _, err := s.Append(t.Context(), ledger.Position{Seq: 5, Hash: "x"}, ledgertest.Drafts()); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("from another chain, far behind: %v", err)
	}
}

func TestVerifyBlobsAndDrop(t *testing.T) {
	t.Parallel()
	dsn := newLedger(t)
	s := openLedger(t, dsn)
	d := ledgertest.Gap("x")
	for i := range 40 {
		d.Blobs = append(d.Blobs, []byte{byte(i), 'b'})
	}
	es, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(d, d))
	check(t, err)
	rep, err := s.Verify(t.Context())
	if err != nil || rep.Entries != 3 || rep.Head != es[2].Position() || !rep.First.Equal(es[0].Time) || !rep.Last.Equal(es[2].Time) ||
		rep.Blobs != 40 || rep.BlobBytes != 80 || rep.Kinds[ledger.KindGap] != 2 {
		t.Errorf("report %+v, %v", rep, err)
	}
	drop := ledgertest.Gap("drop")
	drop.Drop = []string{ledger.BlobDigest(d.Blobs[0]), ledger.BlobDigest(d.Blobs[1]), "none"}
	_, err = s.Append(t.Context(), es[2].Position(), ledgertest.Drafts(drop))
	check(t, err)
	for i, want := range []error{ledger.ErrNoBlob, ledger.ErrNoBlob, nil} {
		if _, err := s.Blob(t.Context(), ledger.BlobDigest(d.Blobs[i])); !errors.Is(err, want) {
			t.Errorf("blob %d gave %v, want %v", i, err, want)
		}
	}
	if rep, err := s.Verify(t.Context()); err != nil || rep.Blobs != 38 {
		t.Errorf("after the drop: %d blobs, %v", rep.Blobs, err)
	}
	raw(t, dsn, `UPDATE blobs SET bytes = 'x' WHERE digest = '`+ledger.BlobDigest(d.Blobs[3])+`'`)
	if _, err := s.Verify(t.Context()); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("a changed blob gave %v", err)
	}
	if _, err := s.Blob(t.Context(), ledger.BlobDigest(d.Blobs[3])); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("reading a changed blob gave %v", err)
	}
}

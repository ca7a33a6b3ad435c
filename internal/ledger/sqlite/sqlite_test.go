package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

func grow(t testing.TB, s *sqlite.Store, n int) []ledger.Entry {
	t.Helper()
	var ds []ledger.Draft
	for i := range n {
		ds = append(ds, ledgertest.Gap(fmt.Sprint(i)))
	}
	es, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(ds...))
	if err != nil {
		t.Fatal(err)
	}
	return es
}

// grown is a closed ledger of n further entries.
func grown(t testing.TB, n int) string {
	t.Helper()
	path := newLedger(t)
	s := openLedger(t, path)
	grow(t, s, n)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// tamper changes a closed ledger as no setpoint would.
func tamper(t testing.TB, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "DROP TRIGGER IF EXISTS entries_keep; DROP TRIGGER IF EXISTS entries_stay; "+query); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInit(t *testing.T) {
	path := newLedger(t)
	for _, name := range []string{path, path + ".lock"} {
		info, err := os.Lstat(name)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", filepath.Base(name), info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(path + ".new*"); len(left) > 0 {
		t.Errorf("init left %v", left)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Init(path, "os:test"); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a second init gave %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("a second init changed the ledger")
	}
	s := openLedger(t, path)
	defer func() { _ = s.Close() }()
	es, err := s.Read(t.Context(), 0, 10)
	if err != nil || len(es) != 1 {
		t.Fatalf("a new ledger holds %v, %v", es, err)
	}
	body, err := ledger.Decode(es[0])
	if err != nil || body != (ledger.Init{Version: 1, By: "os:test"}) || time.Since(es[0].Time).Abs() > time.Minute {
		t.Errorf("the first entry is %+v at %s, %v", body, es[0].Time, err)
	}
}

func TestInitAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for _, suffix := range []string{".new", ".new-wal", ".new-shm"} {
		if err := os.WriteFile(path+suffix, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlite.Init(path, "os:test"); err != nil {
		t.Fatal(err)
	}
	if err := openLedger(t, path).Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		reason string
		make   func(t *testing.T, path string)
		want   error
		text   string
	}{
		"missing":    {"a lost ledger is not an empty one", func(*testing.T, string) {}, ledger.ErrMissing, "`setpoint ledger init` creates one"},
		"empty file": {"a truncated one neither", write(""), nil, "is a SQLite database but no ledger"},
		"other file": {"a file of something else", write(strings.Repeat("not a database ", 100)), nil, "the file is no SQLite database"},
		"directory":  {"a directory", func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) }, nil, "is no regular file"},
		"symlink":    {"a link to a ledger", func(t *testing.T, path string) { check(t, os.Symlink(grown(t, 1), path)) }, nil, "is a symbolic link"},
		"other db":   {"another program's database", func(t *testing.T, path string) { tamper(t, path, "CREATE TABLE x (y)") }, nil, "is a SQLite database but no ledger"},
		"newer":      {"a newer schema", copied(5, "UPDATE ledger_schema SET version = 2"), nil, "schema version 2, this setpoint knows 1"},
		"no first":   {"a chain without its first entry", copied(0, "DELETE FROM entries"), ledger.ErrCorrupt, "no first entry"},
		"body":       {"a changed body", copied(5, `UPDATE entries SET body = '{"why":"x"}' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4 was changed"},
		"time":       {"a changed time", copied(5, `UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4 was changed"},
		"no time":    {"a time that is none", copied(5, `UPDATE entries SET time = 'x' WHERE seq = 4`), ledger.ErrCorrupt, "entry 4"},
		"dropped":    {"a dropped entry", copied(5, `DELETE FROM entries WHERE seq = 4`), ledger.ErrCorrupt, "entry 5 stands where 4 should"},
		"reordered":  {"two entries in each other's place", copied(5, `UPDATE entries SET seq = 99 WHERE seq = 4; UPDATE entries SET seq = 4 WHERE seq = 5; UPDATE entries SET seq = 5 WHERE seq = 99`), ledger.ErrCorrupt, "entry 4 does not follow entry 3"},
		"damaged":    {"a damaged page", damaged, ledger.ErrCorrupt, "damaged"},
		"lock symlink": {"a lock that leads elsewhere", func(t *testing.T, path string) {
			check(t, sqlite.Init(path, "os:test"))
			check(t, os.Remove(path+".lock"))
			check(t, os.Symlink(filepath.Join(t.TempDir(), "x"), path+".lock"))
		}, nil, "ledger lock"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			tt.make(t, path)
			s, err := sqlite.Open(path, sqlite.Options{})
			if err == nil {
				_ = s.Close()
				t.Fatalf("%s was opened", tt.reason)
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: got %v, want %v with %q", tt.reason, err, tt.want, tt.text)
			}
			if _, statErr := os.Lstat(path); errors.Is(tt.want, ledger.ErrMissing) && statErr == nil {
				t.Error("a missing ledger was created")
			}
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(content string) func(*testing.T, string) {
	return func(t *testing.T, path string) { check(t, os.WriteFile(path, []byte(content), 0o600)) }
}

// copied is a ledger of n further entries, changed by a query.
func copied(n int, query string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		check(t, os.Rename(grown(t, n), path))
		tamper(t, path, query)
	}
}

func damaged(t *testing.T, path string) {
	check(t, os.Rename(grown(t, 2000), path))
	b, err := os.ReadFile(path)
	check(t, err)
	for i := len(b) / 2; i < len(b)/2+20000; i++ {
		b[i] = 0xff
	}
	check(t, os.WriteFile(path, b, 0o600))
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	path := newLedger(t)
	check(t, os.Chmod(path, 0))
	for name, open := range map[string]func() error{
		"writer": func() error { _, err := sqlite.Open(path, sqlite.Options{}); return err },
		"reader": func() error { _, err := sqlite.OpenReader(path); return err },
	} {
		if err := open(); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: got %v, want %v", name, err, os.ErrPermission)
		}
	}
}

func TestOneWriter(t *testing.T) {
	path := newLedger(t)
	s := openLedger(t, path)
	_, err := sqlite.Open(path, sqlite.Options{})
	if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("held by process %d", os.Getpid())) {
		t.Errorf("a second writer got %v, want %v with the pid", err, ledger.ErrLocked)
	}
	if err := sqlite.Init(path, "os:test"); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("init beside a writer gave %v", err)
	}
	grow(t, s, 1)
	check(t, s.Close())
	check(t, openLedger(t, path).Close())
}

func TestReaderBesideWriter(t *testing.T) {
	path := newLedger(t)
	s := openLedger(t, path)
	r, err := sqlite.OpenReader(path)
	check(t, err)
	for n := 2; n < 5; n++ {
		grow(t, s, 1)
		if es, err := r.Read(t.Context(), 0, 10); err != nil || len(es) != n {
			t.Fatalf("the reader sees %d entries, %v, want %d", len(es), err, n)
		}
	}
	// A writer that hangs in its plan holds the write transaction.
	_, err = s.Append(t.Context(), ledger.Position{}, func([]ledger.Entry) ([]ledger.Draft, error) {
		es, err := r.Read(t.Context(), 0, 10)
		if err != nil || len(es) != 4 {
			t.Errorf("beside a hanging writer: %d entries, %v", len(es), err)
		}
		fresh, err := sqlite.OpenReader(path)
		check(t, err)
		if rep, err := fresh.Verify(t.Context()); err != nil || rep.Entries != 4 {
			t.Errorf("beside a hanging writer: %+v, %v", rep, err)
		}
		return nil, fresh.Close()
	})
	check(t, err)
	check(t, s.Close())
	if es, err := r.Read(t.Context(), 0, 10); err != nil || len(es) != 4 {
		t.Errorf("after the writer: %d entries, %v", len(es), err)
	}
	check(t, r.Close())
	// And without any writer, when the -wal is gone.
	r, err = sqlite.OpenReader(path)
	check(t, err)
	if es, err := r.Read(t.Context(), 0, 10); err != nil || len(es) != 4 {
		t.Errorf("without a writer: %d entries, %v", len(es), err)
	}
	check(t, r.Close())
	if _, err := sqlite.OpenReader(path + "x"); !errors.Is(err, ledger.ErrMissing) {
		t.Errorf("a missing ledger gave %v", err)
	}
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "a?mode=memory.db", "a#b%20.db", "ü.db"} {
		path := filepath.Join(t.TempDir(), name)
		check(t, sqlite.Init(path, "os:test"))
		s := openLedger(t, path)
		grow(t, s, 1)
		check(t, s.Close())
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	t.Chdir(t.TempDir())
	check(t, sqlite.Init("relative.db", "os:test"))
	check(t, openLedger(t, "relative.db").Close())
	if err := sqlite.Init("missing/ledger.db", "os:test"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory gave %v", err)
	}
}

func TestClock(t *testing.T) {
	path := newLedger(t)
	now := time.Date(2040, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("x", 3600))
	s, err := sqlite.Open(path, sqlite.Options{Now: func() time.Time { return now }})
	check(t, err)
	first := grow(t, s, 1)[1].Time
	if want := now.UTC().Truncate(time.Microsecond); !first.Equal(want) || first.Location() != time.UTC {
		t.Errorf("stamped %s, want %s", first, want)
	}
	now = now.Add(-time.Hour)
	if got := grow(t, s, 1)[2].Time; !got.Equal(first) {
		t.Errorf("a clock that stepped back stamped %s after %s", got, first)
	}
	check(t, s.Close())
	// Nor does a restart turn the stamps back.
	s = openLedger(t, path)
	if got := grow(t, s, 1)[3].Time; !got.Equal(first) {
		t.Errorf("after a restart: %s after %s", got, first)
	}
	check(t, s.Close())
}

func TestDiskFaults(t *testing.T) {
	big := ledgertest.Gap(strings.Repeat("x", 1<<16))
	tests := map[string]struct{ breakIt, text, mend string }{
		"full":      {"PRAGMA max_page_count = 1", "the disk is full; free space on it", "PRAGMA max_page_count = 1000000"},
		"read-only": {"PRAGMA query_only = 1", "read-only", "PRAGMA query_only = 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := openLedger(t, newLedger(t))
			defer func() { check(t, s.Close()) }()
			s.Exec(t, tt.breakIt)
			_, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(big))
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %q", err, tt.text)
			}
			if es, err := s.Read(t.Context(), 0, 10); err != nil || len(es) != 1 {
				t.Errorf("%d entries, %v, want the first alone", len(es), err)
			}
			s.Exec(t, tt.mend)
			if es := grow(t, s, 1); len(es) != 2 {
				t.Errorf("after mending: %d entries", len(es))
			}
		})
	}
}

// TestForeignWriter: somebody who does not know of the lock wrote to the file.
func TestForeignWriter(t *testing.T) {
	path := newLedger(t)
	s := openLedger(t, path)
	defer func() { check(t, s.Close()) }()
	head := grow(t, s, 2)[2].Position()
	tamper(t, path, `DELETE FROM entries WHERE seq = 3`)
	for _, after := range []ledger.Position{head, {}} {
		if _, err := s.Append(t.Context(), after, ledgertest.Drafts()); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("after entry %d: got %v, want %v", after.Seq, err, ledger.ErrCorrupt)
		}
	}
}

func TestAppendOnly(t *testing.T) {
	path := grown(t, 2)
	db, err := sql.Open("sqlite", path)
	check(t, err)
	for _, query := range []string{`UPDATE entries SET body = '' WHERE seq = 2`, `DELETE FROM entries WHERE seq = 3`} {
		if _, err := db.ExecContext(t.Context(), query); err == nil {
			t.Errorf("%s was taken", query)
		}
	}
	check(t, db.Close())
}

func TestVerify(t *testing.T) {
	path := newLedger(t)
	s := openLedger(t, path)
	d := ledgertest.Gap("x")
	d.Blobs = [][]byte{[]byte("blob"), []byte("bytes")}
	es, err := s.Append(t.Context(), ledger.Position{}, ledgertest.Drafts(d, d))
	check(t, err)
	rep, err := s.Verify(t.Context())
	check(t, err)
	want := ledger.Report{Entries: 3, Head: es[2].Position(), First: es[0].Time, Last: es[2].Time, Blobs: 2, BlobBytes: 9}
	if rep.Kinds[ledger.KindGap] != 2 || rep.Kinds[ledger.KindInit] != 1 {
		t.Errorf("kinds %v", rep.Kinds)
	}
	if rep.Kinds = nil; fmt.Sprint(rep) != fmt.Sprint(want) {
		t.Errorf("report %+v, want %+v", rep, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled verification gave %v", err)
	}
	check(t, s.Close())
	tamper(t, path, `UPDATE blobs SET bytes = 'x' WHERE digest = '`+ledger.BlobDigest([]byte("blob"))+`'`)
	r, err := sqlite.OpenReader(path)
	check(t, err)
	if _, err := r.Verify(t.Context()); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("a changed blob gave %v", err)
	}
	if _, err := r.Blob(t.Context(), ledger.BlobDigest([]byte("blob"))); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("reading a changed blob gave %v", err)
	}
	check(t, r.Close())
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// schemaVersion is the version of the tables below; the version of the chain
// in them is ledger.Version.
const schemaVersion = 1

// schema is plain SQL that PostgreSQL takes too but for the triggers, which
// keep a stray tool from changing what was appended.
const schema = `
CREATE TABLE ledger_schema (version INTEGER NOT NULL);
INSERT INTO ledger_schema (version) VALUES (1);
CREATE TABLE entries (
	seq         INTEGER PRIMARY KEY,
	prev        TEXT NOT NULL,
	hash        TEXT NOT NULL,
	time        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	service     TEXT NOT NULL,
	unique_name TEXT NOT NULL,
	body        TEXT NOT NULL
);
CREATE UNIQUE INDEX entries_unique_name ON entries (unique_name) WHERE unique_name <> '';
CREATE TABLE blobs (
	digest TEXT PRIMARY KEY,
	bytes  BLOB NOT NULL
);
CREATE TABLE entry_blobs (
	seq    INTEGER NOT NULL REFERENCES entries (seq),
	digest TEXT NOT NULL REFERENCES blobs (digest),
	PRIMARY KEY (seq, digest)
);
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
	BEGIN SELECT RAISE (ABORT, 'entries are append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
	BEGIN SELECT RAISE (ABORT, 'entries are append-only'); END;
`

const (
	columns     = `SELECT seq, prev, hash, time, kind, service, unique_name, body FROM entries `
	insertEntry = `INSERT INTO entries (seq, prev, hash, time, kind, service, unique_name, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
)

// values are an entry's, in the order of columns.
func values(e ledger.Entry) []any {
	return []any{
		e.Seq, e.Prev, e.Hash, e.Time.Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique, string(e.Body),
	}
}

// pragmas are set on every connection. FULL, because a claim that the disk
// forgets after a power cut is a second effect.
var pragmas = []string{"busy_timeout(5000)", "foreign_keys(1)", "synchronous(2)", "trusted_schema(0)"}

// connect opens a pool on a file that exists. SQLite would create a missing
// one, which is never wanted: a lost ledger is not an empty one.
func connect(path string, readOnly bool, extra ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	q := url.Values{"mode": {"rw"}, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"}}
	if readOnly {
		q.Set("mode", "ro")
	}
	for _, p := range append(pragmas[:len(pragmas):len(pragmas)], extra...) {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, explain(path, "open", err)
	}
	return db, nil
}

// readable is access(2)'s R_OK.
const readable = 4

// usable refuses a path that is no ledger file, before SQLite sees it.
func usable(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w at %s; `setpoint ledger init` creates one", ledger.ErrMissing, path)
	case err != nil:
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	case info.Mode()&os.ModeSymlink != 0:
		return nil, fmt.Errorf("ledger %s is a symbolic link; name the file itself", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("ledger %s is no regular file", path)
	}
	// Not by opening it: to close it again would take away the locks that SQLite
	// holds on it in this process.
	if err := syscall.Access(path, readable); err != nil {
		return nil, fmt.Errorf("ledger is unreadable: %w; it must belong to the user that runs setpoint", &os.PathError{Op: "open", Path: path, Err: err})
	}
	return info, nil
}

// querier is a pool or one connection of it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// known refuses a database that is no ledger, or one of a newer version.
func known(ctx context.Context, db querier, path string) error {
	var tables int
	err := db.QueryRowContext(ctx,
		`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('ledger_schema', 'entries', 'blobs', 'entry_blobs')`).Scan(&tables)
	if err != nil {
		return explain(path, "open", err)
	}
	if tables != 4 {
		return fmt.Errorf("ledger %s is a SQLite database but no ledger; move it away and run `setpoint ledger init`, or restore the ledger", path)
	}
	var version int
	if err := db.QueryRowContext(ctx, `SELECT max(version) FROM ledger_schema`).Scan(&version); err != nil {
		return explain(path, "read schema version", err)
	}
	if version != schemaVersion {
		return fmt.Errorf("ledger %s has schema version %d, this setpoint knows %d; run the version that wrote it", path, version, schemaVersion)
	}
	return nil
}

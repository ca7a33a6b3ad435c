package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// schemaVersion is the version of the tables below; the version of the chain
// in them is ledger.Version.
const schemaVersion = 1

// schema is that of the SQLite store with a row for the head. Text is compared
// by its bytes ("C"): in another collation, a new library on the server can
// order it otherwise, and an index of the old order no longer finds a name that
// is there. The function outlives tables that somebody dropped by hand.
const schema = `
CREATE TABLE ledger_schema (version INTEGER NOT NULL);
INSERT INTO ledger_schema (version) VALUES (1);
CREATE TABLE entries (
	seq         BIGINT PRIMARY KEY,
	prev        TEXT COLLATE "C" NOT NULL,
	hash        TEXT COLLATE "C" NOT NULL,
	time        TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	service     TEXT COLLATE "C" NOT NULL,
	unique_name TEXT COLLATE "C" NOT NULL,
	body        BYTEA NOT NULL
);
CREATE UNIQUE INDEX entries_unique_name ON entries (unique_name) WHERE unique_name <> '';
CREATE INDEX entries_kind ON entries (kind, seq);
CREATE TABLE blobs (
	digest TEXT COLLATE "C" PRIMARY KEY,
	bytes  BYTEA NOT NULL
);
CREATE TABLE entry_blobs (
	seq    BIGINT NOT NULL REFERENCES entries (seq),
	digest TEXT COLLATE "C" NOT NULL REFERENCES blobs (digest),
	PRIMARY KEY (seq, digest)
);
CREATE INDEX entry_blobs_digest ON entry_blobs (digest);
CREATE TABLE ledger_head (
	one  BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
	seq  BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL
);
INSERT INTO ledger_head (seq, hash) VALUES (0, '');
CREATE OR REPLACE FUNCTION ledger_append_only () RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'entries are append-only'; END $$;
CREATE TRIGGER entries_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
	FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only ();
`

const (
	begin       = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	columns     = `SELECT seq, prev, hash, time, kind, service, unique_name, body FROM entries `
	insertEntry = `INSERT INTO entries (seq, prev, hash, time, kind, service, unique_name, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	setHead     = `UPDATE ledger_head SET seq = $1, hash = $2 WHERE seq = $3 AND hash = $4`
)

// values are an entry's, in the order of columns.
func values(e ledger.Entry) []any {
	return []any{
		e.Seq, e.Prev, e.Hash, e.Time.Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique, []byte(e.Body),
	}
}

// scan reads a row of columns.
func scan(row pgx.CollectableRow) (ledger.Entry, error) {
	var e ledger.Entry
	var at, kind string
	var body []byte
	if err := row.Scan(&e.Seq, &e.Prev, &e.Hash, &at, &kind, &e.Service, &e.Unique, &body); err != nil {
		return ledger.Entry{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: entry %d: %w", ledger.ErrCorrupt, e.Seq, err)
	}
	e.Time, e.Kind, e.Body = t.UTC(), ledger.Kind(kind), json.RawMessage(body)
	return e, nil
}

// querier is a pool or one connection.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// known refuses a database that holds no ledger, or one of a newer version.
func known(ctx context.Context, db querier) error {
	var tables int
	err := db.QueryRow(ctx, `SELECT count(to_regclass(name)) FROM unnest(
		ARRAY['ledger_schema', 'entries', 'blobs', 'entry_blobs', 'ledger_head']) AS name`).Scan(&tables)
	switch {
	case err != nil:
		return err
	case tables == 0:
		return fmt.Errorf("%w; `setpoint ledger init` creates one", ledger.ErrMissing)
	case tables != 5:
		return errors.New("the database has some of a ledger's tables but not all; restore the ledger, or use a database of its own")
	}
	var version int
	if err := db.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM ledger_schema`).Scan(&version); err != nil {
		return err
	}
	if version != schemaVersion {
		return fmt.Errorf("it has schema version %d, this setpoint knows %d; run the version that wrote it", version, schemaVersion)
	}
	return nil
}

// Init creates the tables of a ledger with its first entry, which names by, the
// principal who wanted it. It never touches a ledger that is there (ErrExists).
func Init(ctx context.Context, dsn, by string) (err error) {
	cfg, name, err := parse(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return explain(name, "create", err)
	}
	// Closing rolls back what is not committed.
	defer func() { err = errors.Join(err, hangUp(conn)) }()
	if err := durable(ctx, conn); err != nil {
		return explain(name, "create", err)
	}
	return explain(name, "create", create(ctx, conn, by))
}

func create(ctx context.Context, conn *pgx.Conn, by string) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return err
	}
	// Two at once: the second waits and finds the first's tables.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, lockClass); err != nil {
		return err
	}
	if err := absent(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, schema); err != nil {
		return err
	}
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return err
	}
	e, err := ledger.Link(ledger.Position{}, now, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: by}})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertEntry, values(e)...); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, setHead, e.Seq, e.Hash, 0, ""); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// absent refuses a database in which names of ours are taken.
func absent(ctx context.Context, db querier) error {
	switch err := known(ctx, db); {
	case errors.Is(err, ledger.ErrMissing):
		return encoding(ctx, db)
	case err == nil:
		return fmt.Errorf("the ledger %w", ledger.ErrExists)
	default:
		return fmt.Errorf("something %w: %w", ledger.ErrExists, err)
	}
}

// encoding refuses a database that cannot hold every name.
func encoding(ctx context.Context, db querier) error {
	var is string
	if err := db.QueryRow(ctx, `SELECT current_setting('server_encoding')`).Scan(&is); err != nil {
		return err
	}
	if is != "UTF8" {
		return fmt.Errorf("the database has the encoding %s; create one with ENCODING 'UTF8'", is)
	}
	return nil
}

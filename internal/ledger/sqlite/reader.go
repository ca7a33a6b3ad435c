package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Reader reads a ledger. It takes no lock: it works beside a running writer, a
// hung one and none.
type Reader struct {
	path string
	db   *sql.DB
}

// OpenReader opens a ledger for reading. It does not verify the chain: whoever
// folds what it reads does, and Verify does.
func OpenReader(path string) (*Reader, error) {
	if _, err := usable(path); err != nil {
		return nil, err
	}
	return newReader(path)
}

func newReader(path string) (*Reader, error) {
	db, err := connect(path, true, "query_only(1)")
	if err != nil {
		return nil, err
	}
	if err := known(context.Background(), db, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.SetMaxOpenConns(readers)
	return &Reader{path: path, db: db}, nil
}

// readers is how many reads run at once; each is short.
const readers = 4

// fault explains a failure. It gives the context's error where that is the
// cause, so that a cancelled pass is not taken for a broken ledger.
func (r *Reader) fault(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil && (code(err) == codes.SQLITE_INTERRUPT || errors.Is(err, ctx.Err())) {
		return ctx.Err()
	}
	return explain(r.path, what, err)
}

// Read returns up to limit entries after seq, in order.
func (r *Reader) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	rows, err := r.db.QueryContext(ctx, columns+`WHERE seq > ? ORDER BY seq LIMIT ?`, after, limit)
	if err != nil {
		return nil, r.fault(ctx, "read", err)
	}
	var es []ledger.Entry
	err = each(rows, func(e ledger.Entry) error {
		es = append(es, e)
		return nil
	})
	if err != nil {
		return nil, r.fault(ctx, "read", err)
	}
	return es, nil
}

// Newest returns the newest entry of a kind; ok is false without one.
func (r *Reader) Newest(ctx context.Context, kind ledger.Kind) (e ledger.Entry, ok bool, err error) {
	rows, err := r.db.QueryContext(ctx, columns+`WHERE kind = ? ORDER BY seq DESC LIMIT 1`, string(kind))
	if err != nil {
		return e, false, r.fault(ctx, "read", err)
	}
	err = each(rows, func(found ledger.Entry) error {
		e, ok = found, true
		return nil
	})
	return e, ok, r.fault(ctx, "read", err)
}

// EachBlob calls f with every blob, in the order of digests.
func (r *Reader) EachBlob(ctx context.Context, f func(digest string, blob []byte) error) (err error) {
	rows, err := r.db.QueryContext(ctx, `SELECT digest, bytes FROM blobs ORDER BY digest`)
	if err != nil {
		return r.fault(ctx, "read blobs", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var digest string
		var b []byte
		if err := rows.Scan(&digest, &b); err != nil {
			return r.fault(ctx, "read blobs", err)
		}
		if err := f(digest, b); err != nil {
			return err
		}
	}
	return r.fault(ctx, "read blobs", rows.Err())
}

// each calls f with every entry of the rows and closes them.
func each(rows *sql.Rows, f func(ledger.Entry) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scan(rows *sql.Rows) (ledger.Entry, error) {
	var e ledger.Entry
	var at string
	var body []byte
	if err := rows.Scan(&e.Seq, &e.Prev, &e.Hash, &at, &e.Kind, &e.Service, &e.Unique, &body); err != nil {
		return ledger.Entry{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: entry %d: %w", ledger.ErrCorrupt, e.Seq, err)
	}
	e.Time, e.Body = t.UTC(), json.RawMessage(body)
	return e, nil
}

// Blob returns the bytes of a digest, or ErrNoBlob. Bytes that changed since
// they were stored are ErrCorrupt.
func (r *Reader) Blob(ctx context.Context, digest string) ([]byte, error) {
	var b []byte
	err := r.db.QueryRowContext(ctx, `SELECT bytes FROM blobs WHERE digest = ?`, digest).Scan(&b)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("ledger %s: blob %s: %w", r.path, digest, ledger.ErrNoBlob)
	case err != nil:
		return nil, r.fault(ctx, "read blob "+digest, err)
	case ledger.BlobDigest(b) != digest:
		return nil, fmt.Errorf("ledger %s: %w: blob %s was changed after it was written", r.path, ledger.ErrCorrupt, digest)
	}
	return b, nil
}

// Close ends reading.
func (r *Reader) Close() error { return explain(r.path, "close", r.db.Close()) }

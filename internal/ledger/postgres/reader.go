package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Reader reads a ledger. It takes no lock: it works beside any writers.
type Reader struct {
	name string
	cfg  *pgxpool.Config
	pool *pgxpool.Pool
}

// OpenReader opens a ledger for reading. It does not verify the chain: whoever
// folds what it reads does, and Verify does.
func OpenReader(ctx context.Context, dsn string) (*Reader, error) {
	cfg, name, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	r := &Reader{name: name, cfg: cfg}
	if r.pool, err = pgxpool.NewWithConfig(ctx, cfg.Copy()); err != nil {
		return nil, explain(name, "open", err)
	}
	if err := known(ctx, r.pool); err != nil {
		r.pool.Close()
		return nil, r.fault(ctx, "open", err)
	}
	return r, nil
}

// Read returns up to limit entries after seq, in order.
func (r *Reader) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	rows, err := r.pool.Query(ctx, columns+`WHERE seq > $1 ORDER BY seq LIMIT $2`, after, limit)
	if err != nil {
		return nil, r.fault(ctx, "read", err)
	}
	es, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, r.fault(ctx, "read", err)
	}
	return es, nil
}

// Newest returns the newest entry of a kind; ok is false without one.
func (r *Reader) Newest(ctx context.Context, kind ledger.Kind) (e ledger.Entry, ok bool, err error) {
	rows, err := r.pool.Query(ctx, columns+`WHERE kind = $1 ORDER BY seq DESC LIMIT 1`, string(kind))
	if err != nil {
		return e, false, r.fault(ctx, "read", err)
	}
	e, err = pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Entry{}, false, nil
	}
	return e, err == nil, r.fault(ctx, "read", err)
}

// blobPage is how many blobs are read at once: a statement must end before its
// timeout, however slow whoever takes them is.
const blobPage = 16

type named struct {
	Digest string
	Bytes  []byte
}

// EachBlob calls f with every blob, in the order of digests.
func (r *Reader) EachBlob(ctx context.Context, f func(digest string, blob []byte) error) error {
	for after := ""; ; {
		rows, err := r.pool.Query(ctx, `SELECT digest, bytes FROM blobs WHERE digest > $1 ORDER BY digest LIMIT $2`, after, blobPage)
		if err != nil {
			return r.fault(ctx, "read blobs", err)
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[named])
		if err != nil || len(page) == 0 {
			return r.fault(ctx, "read blobs", err)
		}
		for _, b := range page {
			if err := f(b.Digest, b.Bytes); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Digest
	}
}

// Blob returns the bytes of a digest, or ErrNoBlob. Bytes that changed since
// they were stored are ErrCorrupt.
func (r *Reader) Blob(ctx context.Context, digest string) ([]byte, error) {
	var b []byte
	err := r.pool.QueryRow(ctx, `SELECT bytes FROM blobs WHERE digest = $1`, digest).Scan(&b)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("ledger %s: blob %s: %w", r.name, digest, ledger.ErrNoBlob)
	case err != nil:
		return nil, r.fault(ctx, "read blob "+digest, err)
	case ledger.BlobDigest(b) != digest:
		return nil, r.changed(digest)
	}
	return b, nil
}

func (r *Reader) changed(digest string) error {
	return fmt.Errorf("ledger %s: %w: blob %s was changed after it was written", r.name, ledger.ErrCorrupt, digest)
}

// Verify reads everything: every link and body of the chain, the head, every
// blob against its digest, and the newest checkpoint. The error names the first
// thing that is wrong; the report is of what was read until then.
func (r *Reader) Verify(ctx context.Context) (ledger.Report, error) {
	rep := ledger.Report{Kinds: map[ledger.Kind]uint64{}}
	var err error
	rep.Head, rep.Last, err = r.chain(ctx, ledger.Position{}, func(e ledger.Entry) error {
		if rep.Entries == 0 {
			rep.First = e.Time
		}
		rep.Entries++
		rep.Kinds[e.Kind]++
		_, err := ledger.Decode(e)
		return err
	})
	if err != nil {
		return rep, err
	}
	err = r.EachBlob(ctx, func(digest string, b []byte) error {
		if ledger.BlobDigest(b) != digest {
			return r.changed(digest)
		}
		rep.Blobs++
		rep.BlobBytes += uint64(len(b))
		return nil
	})
	if err != nil {
		return rep, err
	}
	c, err := ledger.NewestCheckpoint(ctx, r)
	if err == nil && c.At.Seq > 0 {
		err = ledger.Audit(ctx, r, c)
	}
	return rep, r.fault(ctx, "verify", err)
}

// chain goes over the links after a position that is known to be good, up to
// the head, and returns the last one. With f nil only links are read.
func (r *Reader) chain(ctx context.Context, from ledger.Position, f func(ledger.Entry) error) (at ledger.Position, last time.Time, err error) {
	head, err := r.head(ctx)
	if err != nil {
		return from, last, r.fault(ctx, "verify", err)
	}
	headSeen := false
	at, err = ledger.Walk(ctx, r, from, func(e ledger.Entry) error {
		headSeen = headSeen || e.Position() == head
		if err := ledger.InTime(last, e); err != nil {
			return err
		}
		last = e.Time
		if f == nil {
			return nil
		}
		return f(e)
	})
	switch {
	case err != nil:
	case last.IsZero() && from.Seq == 0:
		err = fmt.Errorf("%w: it has no first entry", ledger.ErrCorrupt)
	case last.IsZero():
		err = fmt.Errorf("%w: it has no entry after entry %d", ledger.ErrCorrupt, from.Seq)
	case !headSeen:
		err = fmt.Errorf("%w: its head, entry %d, is not in it", ledger.ErrCorrupt, head.Seq)
	}
	return at, last, r.fault(ctx, "verify", err)
}

// head reads the head and makes sure that it is the last entry's, in one
// statement, so that a writer beside cannot come between.
func (r *Reader) head(ctx context.Context) (head ledger.Position, err error) {
	var last uint64
	err = r.pool.QueryRow(ctx, `SELECT seq, hash, (SELECT coalesce(max(seq), 0) FROM entries) FROM ledger_head`).
		Scan(&head.Seq, &head.Hash, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return head, errNoHead
	}
	if err == nil && last != 0 && head.Seq != last {
		err = fmt.Errorf("%w: its head is entry %d, its last one is %d", ledger.ErrCorrupt, head.Seq, last)
	}
	return head, err
}

var errNoHead = fmt.Errorf("%w: the row of its head is gone", ledger.ErrCorrupt)

// Close ends reading.
func (r *Reader) Close() error {
	r.pool.Close()
	return nil
}

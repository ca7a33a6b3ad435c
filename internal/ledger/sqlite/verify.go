package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Verify reads everything: the database file's own checks, every link and body
// of the chain, and every blob against its digest. The error names the first
// thing that is wrong; the report is of what was read until then.
func (r *Reader) Verify(ctx context.Context) (ledger.Report, error) {
	rep := ledger.Report{Kinds: map[ledger.Kind]uint64{}}
	var verdict string
	if err := r.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return rep, r.fault(ctx, "check file", err)
	}
	if verdict != "ok" {
		return rep, fmt.Errorf("ledger %s: %w: %s", r.path, ledger.ErrCorrupt, verdict)
	}
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
	if err := r.blobs(ctx, &rep); err != nil {
		return rep, err
	}
	return rep, r.checkpoint(ctx)
}

// checkpoint holds the newest checkpoint against the entries that it stands
// for.
func (r *Reader) checkpoint(ctx context.Context) error {
	c, err := ledger.NewestCheckpoint(ctx, r)
	if err != nil || c.At.Seq == 0 {
		return err
	}
	return ledger.Audit(ctx, r, c)
}

// chain goes over the links after a position that is known to be good, and
// returns the last one. With f nil only links are read.
func (r *Reader) chain(ctx context.Context, from ledger.Position, f func(ledger.Entry) error) (ledger.Position, time.Time, error) {
	head := from
	var last time.Time
	rows, err := r.db.QueryContext(ctx, columns+`WHERE seq > ? ORDER BY seq`, from.Seq)
	if err != nil {
		return head, last, r.fault(ctx, "read", err)
	}
	err = each(rows, func(e ledger.Entry) error {
		if err := ledger.Verify(head, e); err != nil {
			return err
		}
		if err := ledger.InTime(last, e); err != nil {
			return err
		}
		head, last = e.Position(), e.Time
		if f == nil {
			return nil
		}
		return f(e)
	})
	if err == nil && last.IsZero() {
		err = fmt.Errorf("%w: it has no first entry, or none after entry %d", ledger.ErrCorrupt, from.Seq)
	}
	return head, last, r.fault(ctx, "verify", err)
}

func (r *Reader) blobs(ctx context.Context, rep *ledger.Report) error {
	return r.EachBlob(ctx, func(digest string, b []byte) error {
		if ledger.BlobDigest(b) != digest {
			return fmt.Errorf("ledger %s: %w: blob %s was changed after it was written", r.path, ledger.ErrCorrupt, digest)
		}
		rep.Blobs++
		rep.BlobBytes += uint64(len(b))
		return nil
	})
}

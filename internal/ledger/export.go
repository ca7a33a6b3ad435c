package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Source is what an export reads.
type Source interface {
	Read(ctx context.Context, after uint64, limit int) ([]Entry, error)
	// EachBlob calls f with every blob, in the order of digests.
	EachBlob(ctx context.Context, f func(digest string, blob []byte) error) error
}

// exportFormat opens an export; a new layout gets a new one.
const exportFormat = "setpoint.dev/ledger-export/v1"

// exportLine is one line of an export: exactly one of its fields is set. The
// first is Format, the last End, so that half an export does not pass for a
// whole one.
type exportLine struct {
	Format string      `json:"format,omitempty"`
	Entry  *Entry      `json:"entry,omitempty"`
	Blob   *exportBlob `json:"blob,omitempty"`
	End    *exportEnd  `json:"end,omitempty"`
}

type exportBlob struct {
	Digest string `json:"digest"`
	Bytes  []byte `json:"bytes"`
}

type exportEnd struct {
	Head    Position `json:"head"`
	Entries uint64   `json:"entries"`
	Blobs   uint64   `json:"blobs"`
}

// pageSize is how many entries are read at a time.
const pageSize = 1000

// Export writes entries and then blobs as JSON lines, verifying each link and
// each digest on the way. Entries that are appended meanwhile may be in it or
// not; what is in it is a prefix of the chain.
func Export(ctx context.Context, src Source, w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(exportLine{Format: exportFormat}); err != nil {
		return err
	}
	var end exportEnd
	head, err := Walk(ctx, src, Position{}, func(e Entry) error {
		end.Entries++
		return enc.Encode(exportLine{Entry: &e})
	})
	if err != nil {
		return err
	}
	err = src.EachBlob(ctx, func(digest string, blob []byte) error {
		if BlobDigest(blob) != digest {
			return fmt.Errorf("%w: blob %s was changed after it was written", ErrCorrupt, digest)
		}
		end.Blobs++
		return enc.Encode(exportLine{Blob: &exportBlob{Digest: digest, Bytes: blob}})
	})
	if err != nil {
		return err
	}
	end.Head = head
	return enc.Encode(exportLine{End: &end})
}

// Walk reads the entries after a position, page by page, verifies that each
// follows the one before, and returns the last position.
func Walk(ctx context.Context, src interface {
	Read(ctx context.Context, after uint64, limit int) ([]Entry, error)
}, from Position, f func(Entry) error,
) (Position, error) {
	for {
		page, err := src.Read(ctx, from.Seq, pageSize)
		if err != nil || len(page) == 0 {
			return from, err
		}
		for _, e := range page {
			if err := Verify(from, e); err != nil {
				return from, err
			}
			if err := f(e); err != nil {
				return from, err
			}
			from = e.Position()
		}
	}
}

// Exported is an export that was read.
type Exported struct {
	Entries []Entry
	// Blobs by digest.
	Blobs map[string][]byte
}

// ReadExport reads what Export wrote, verifies chain and digests, and refuses
// an export without its end.
func ReadExport(r io.Reader) (Exported, error) {
	x := exportReader{out: Exported{Blobs: map[string][]byte{}}}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return x.out, err
		}
		if len(line) > 0 {
			if err := x.line(n, line); err != nil {
				return x.out, fmt.Errorf("export line %d: %w", n, err)
			}
		}
		if err != nil {
			return x.out, x.ended()
		}
	}
}

type exportReader struct {
	out  Exported
	head Position
	end  *exportEnd
}

func (x *exportReader) line(n int, line []byte) error {
	var l exportLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	if x.end != nil || (n == 1) != (l.Format == exportFormat) {
		return fmt.Errorf("this is no export of %s", exportFormat)
	}
	x.end = l.End
	switch {
	case l.Entry != nil:
		if err := Verify(x.head, *l.Entry); err != nil {
			return err
		}
		x.head = l.Entry.Position()
		x.out.Entries = append(x.out.Entries, *l.Entry)
	case l.Blob != nil:
		if BlobDigest(l.Blob.Bytes) != l.Blob.Digest {
			return fmt.Errorf("%w: blob %s was changed after it was written", ErrCorrupt, l.Blob.Digest)
		}
		x.out.Blobs[l.Blob.Digest] = l.Blob.Bytes
	}
	return nil
}

func (x *exportReader) ended() error {
	whole := exportEnd{Head: x.head, Entries: uint64(len(x.out.Entries)), Blobs: uint64(len(x.out.Blobs))}
	if x.end == nil || *x.end != whole {
		return errors.New("the export ends before its end: it was cut off")
	}
	return nil
}

package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"
)

// chainDomain opens the hashed bytes, so that no hash of ours can stand for
// another program's. A new definition gets a new one.
const chainDomain = "setpoint.dev/ledger/v1"

// Resolution is the precision of entry times: what every store keeps exactly.
const Resolution = time.Microsecond

// Position is where the chain stands after this entry.
func (e Entry) Position() Position { return Position{Seq: e.Seq, Hash: e.Hash} }

// Link makes the entry that follows prev. It refuses a draft whose kind is
// unknown, whose body is not the one of its kind, or whose body could not be
// folded, so that what is in a chain can always be folded.
func Link(prev Position, at time.Time, d Draft) (Entry, error) {
	body, err := encode(d)
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d (%s): %w", prev.Seq+1, d.Kind, err)
	}
	if (d.Kind == KindInit) != (prev.Seq == 0) {
		return Entry{}, fmt.Errorf("entry %d (%s): a chain begins with %s and holds no second one", prev.Seq+1, d.Kind, KindInit)
	}
	e := Entry{
		Seq: prev.Seq + 1, Prev: prev.Hash, Time: at.UTC().Truncate(Resolution),
		Kind: d.Kind, Service: d.Service, Unique: d.Unique, Body: body,
	}
	e.Hash = hashOf(e)
	return e, nil
}

// Verify reports whether the entry follows prev and is what was appended; the
// error wraps ErrCorrupt and names the entry.
func Verify(prev Position, e Entry) error {
	switch {
	case e.Seq != prev.Seq+1:
		return fmt.Errorf("%w: entry %d stands where %d should", ErrCorrupt, e.Seq, prev.Seq+1)
	case e.Prev != prev.Hash:
		return fmt.Errorf("%w: entry %d does not follow entry %d", ErrCorrupt, e.Seq, prev.Seq)
	case e.Hash != hashOf(e):
		return fmt.Errorf("%w: entry %d was changed after it was written", ErrCorrupt, e.Seq)
	}
	return nil
}

// Stamp is the time of a batch of entries: the store's clock, and never one
// before the newest entry's, so that a clock which steps back stops the stamps
// and does not turn them back. Only a person's word does (Lowered).
func Stamp(now, last time.Time, drafts []Draft) time.Time {
	lowers := slices.ContainsFunc(drafts, func(d Draft) bool { return d.Kind == KindLowered })
	if now.Before(last) && !lowers {
		return last
	}
	return now
}

// InTime reports whether an entry may stand after one of that time; the error
// wraps ErrCorrupt.
func InTime(last time.Time, e Entry) error {
	if e.Time.Before(last) && e.Kind != KindLowered {
		return fmt.Errorf("%w: entry %d is older than the one before", ErrCorrupt, e.Seq)
	}
	return nil
}

// hashOf is hex SHA-256 over these fields in this order, each written as its
// length in bytes (decimal), a colon, the bytes and a newline: the domain
// "setpoint.dev/ledger/v1", seq (decimal), prev, time (RFC 3339, UTC, as many
// digits of the second's fraction as needed, at most six), kind, service,
// unique, body (the stored bytes). Lengths make the encoding unambiguous
// without a canonical form of the body.
func hashOf(e Entry) string {
	h := sha256.New()
	for _, f := range []string{
		chainDomain, strconv.FormatUint(e.Seq, 10), e.Prev,
		e.Time.UTC().Format(time.RFC3339Nano), string(e.Kind), e.Service, e.Unique,
	} {
		field(h, []byte(f))
	}
	field(h, e.Body)
	return hex.EncodeToString(h.Sum(nil))
}

func field(h hash.Hash, b []byte) {
	// A hash never fails to write.
	_, _ = fmt.Fprintf(h, "%d:%s\n", len(b), b)
}

// BlobDigest is the name of a blob: hex SHA-256 of its bytes.
func BlobDigest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return hex.EncodeToString(sum[:])
}

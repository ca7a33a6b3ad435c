package replay

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Export is the past in an export that was read. It lies in memory whole.
type Export struct{ ledger.Exported }

// Read returns up to limit entries after seq, in order.
func (x Export) Read(_ context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	from := sort.Search(len(x.Entries), func(i int) bool { return x.Entries[i].Seq > after })
	return x.Entries[from:min(from+limit, len(x.Entries))], nil
}

// Blob returns the bytes of a digest, or ledger.ErrNoBlob.
func (x Export) Blob(_ context.Context, digest string) ([]byte, error) {
	raw, ok := x.Blobs[digest]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", digest, ledger.ErrNoBlob)
	}
	return raw, nil
}

// Newest is the time of the newest entry; zero without one.
func (x Export) Newest() time.Time {
	if len(x.Entries) == 0 {
		return time.Time{}
	}
	return x.Entries[len(x.Entries)-1].Time
}

package reconcile_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// shyStore is a real store whose first entries cannot be read for a while.
type shyStore struct {
	ledger.Store
	shy atomic.Bool
}

func (s *shyStore) Read(ctx context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	if after == 0 && s.shy.Load() {
		return nil, errors.New("the disk does not answer")
	}
	return s.Store.Read(ctx, after, limit)
}

// TestNothingIsClaimedUnverified: a start from a checkpoint acts when the entries
// that it stands for were gone over, not when that was tried.
func TestNothingIsClaimedUnverified(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	es := w.entries()
	s, err := ledger.Fold(es)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := ledger.CheckpointDraft(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Append(t.Context(), s.Head, func([]ledger.Entry) ([]ledger.Draft, error) { return []ledger.Draft{draft}, nil }); err != nil {
		t.Fatal(err)
	}
	var store *shyStore
	w.options = func(o *reconcile.Options) {
		store = &shyStore{Store: o.Store}
		store.shy.Store(true)
		o.Store = store
	}
	w.restart()
	w.run(6 * time.Minute)
	w.breakNow(0.3)
	w.until("hold", 10*time.Minute, func(r reconcile.Result) bool { return holdsFor(r, "ledger-unverified") })
	if n := len(w.actuator.Journal()); n != 0 {
		t.Errorf("%d requests from a ledger that nobody has verified", n)
	}
	store.shy.Store(false)
	w.until("effect", 10*time.Minute, applied)
}

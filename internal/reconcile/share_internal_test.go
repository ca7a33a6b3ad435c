package reconcile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// counted is a real ledger that counts its transactions, and can be slow to begin
// the first, or fail.
type counted struct {
	ledger.Store
	appends atomic.Int32
	first   chan struct{}
	full    atomic.Pointer[error]
}

func (c *counted) Append(ctx context.Context, after ledger.Position, p ledger.Plan) ([]ledger.Entry, error) {
	if c.appends.Add(1) == 1 && c.first != nil {
		<-c.first
	}
	if err := c.full.Load(); err != nil {
		return nil, *err
	}
	return c.Store.Append(ctx, after, p)
}

func openCounted(t *testing.T) (*book, *counted) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "setpoint.db")
	if err := sqlite.Init(path, "os:test"); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(path, sqlite.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c := &counted{Store: store}
	b := newBook(c)
	if err := b.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, c
}

func breach(service string) plan {
	return func(s *ledger.State) ([]ledger.Draft, error) {
		d, err := ledger.StateDraft(s, service, ledger.StateChange{To: compare.Breached})
		return []ledger.Draft{d}, err
	}
}

// together lets n passes wait behind one that holds the ledger, and gives what
// became of each.
func together(t *testing.T, b *book, c *counted, n int, of func(i int) (string, plan)) ([][]ledger.Entry, []error) {
	t.Helper()
	c.first = make(chan struct{})
	entries, errs := make([][]ledger.Entry, n), make([]error, n)
	var all sync.WaitGroup
	all.Go(func() { _ = b.append(t.Context(), breach("first")) })
	for c.appends.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range n {
		all.Go(func() {
			service, p := of(i)
			entries[i], errs[i] = b.share(t.Context(), service, p)
		})
	}
	for waiting := 0; waiting < n; time.Sleep(time.Millisecond) {
		b.queueing.Lock()
		waiting = len(b.queue)
		b.queueing.Unlock()
	}
	close(c.first)
	all.Wait()
	return entries, errs
}

// TestShareIsOneTransaction: passes that wait for the ledger at the same moment
// are one transaction, and each gets its own entries.
func TestShareIsOneTransaction(t *testing.T) {
	b, c := openCounted(t)
	entries, errs := together(t, b, c, 100, func(i int) (string, plan) {
		name := fmt.Sprintf("s%d", i)
		return name, breach(name)
	})
	for i := range entries {
		if errs[i] != nil || len(entries[i]) != 1 || entries[i][0].Service != fmt.Sprintf("s%d", i) {
			t.Errorf("s%d: %v, %v", i, entries[i], errs[i])
		}
	}
	if n := c.appends.Load(); n != 2 {
		t.Errorf("%d transactions for the first and a hundred that waited, want 2", n)
	}
	b.view(func(s *ledger.State) {
		if len(s.Services) != 101 {
			t.Errorf("%d services are folded, want 101", len(s.Services))
		}
	})
}

// TestShareKeepsErrorsApart: what one plan finds wrong is its own, what says
// nothing writes nothing, and two of one service come one after the other.
func TestShareKeepsErrorsApart(t *testing.T) {
	b, c := openCounted(t)
	broken := errors.New("broken")
	entries, errs := together(t, b, c, 5, func(i int) (string, plan) {
		switch i {
		case 0:
			return "bad", func(*ledger.State) ([]ledger.Draft, error) { return nil, broken }
		case 1:
			return "quiet", func(*ledger.State) ([]ledger.Draft, error) { return nil, nil }
		case 2:
			return "good", breach("good")
		}
		return "twice", breach("twice")
	})
	if !errors.Is(errs[0], broken) || errs[1] != nil || len(entries[1]) != 0 || errs[2] != nil || len(entries[2]) != 1 {
		t.Errorf("errors %v, entries %v", errs, entries)
	}
	// The second of the two sees the first.
	won := 0
	for i := 3; i < 5; i++ {
		switch {
		case errs[i] == nil && len(entries[i]) == 1:
			won++
		case !errors.Is(errs[i], ledger.ErrExists):
			t.Errorf("%v", errs[i])
		}
	}
	if won != 1 {
		t.Errorf("%d of two equal entries of one service", won)
	}
}

// TestShareWithOneThatWasBeaten: a name that another process has taken costs the
// others of the transaction nothing.
func TestShareWithOneThatWasBeaten(t *testing.T) {
	b, c := openCounted(t)
	taken := func(*ledger.State) ([]ledger.Draft, error) {
		return []ledger.Draft{{Kind: ledger.KindGap, Unique: "taken", Body: ledger.Gap{Why: "test"}}}, nil
	}
	if err := b.append(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	c.appends.Store(0)
	entries, errs := together(t, b, c, 3, func(i int) (string, plan) {
		if i == 1 {
			return "beaten", taken
		}
		name := fmt.Sprintf("s%d", i)
		return name, breach(name)
	})
	if !raced(errs[1]) || errs[0] != nil || errs[2] != nil || len(entries[0]) != 1 || len(entries[2]) != 1 {
		t.Errorf("errors %v, entries %v", errs, entries)
	}
}

// TestShareThatFails: a ledger that cannot be written says so to each, once.
func TestShareThatFails(t *testing.T) {
	b, c := openCounted(t)
	full := errors.New("no space left on device")
	c.full.Store(&full)
	_, errs := together(t, b, c, 50, func(i int) (string, plan) {
		name := fmt.Sprintf("s%d", i)
		return name, breach(name)
	})
	for _, err := range errs {
		if !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
	}
	if n := c.appends.Load(); n > 2 {
		t.Errorf("a full disk was tried %d times", n)
	}
	c.full.Store(nil)
	if _, err := b.share(t.Context(), "after", breach("after")); err != nil || b.broken() != nil {
		t.Errorf("after: %v, %v", err, b.broken())
	}
}

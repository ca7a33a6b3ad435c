package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// Callers that hang up at any moment of an append leave a ledger that the next
// one can write.
func TestHungUpCallersLeaveNoTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint.db")
	if err := sqlite.Init(path, "os:test"); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	gap := func([]ledger.Entry) ([]ledger.Draft, error) {
		return []ledger.Draft{{Kind: ledger.KindGap, Body: ledger.Gap{Why: "test"}}}, nil
	}
	var at ledger.Position
	for i := range 2000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%200)*time.Microsecond)
		// Whether it was in time is not the point.
		_, _ = s.Append(ctx, at, gap)
		cancel()
	}
	entries, err := s.Append(t.Context(), at, gap)
	if err != nil {
		t.Fatalf("after callers that hung up: %v", err)
	}
	if _, err := ledger.Fold(entries); err != nil {
		t.Errorf("the chain does not fold: %v", err)
	}
}

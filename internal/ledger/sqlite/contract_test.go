package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() ledger.Store {
		path := newLedger(t)
		return func() ledger.Store { return openLedger(t, path) }
	})
}

// newLedger makes an empty ledger and returns its path.
func newLedger(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := sqlite.Init(path, "os:test"); err != nil {
		t.Fatal(err)
	}
	return path
}

func openLedger(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

package month

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/ledgertest"
)

func TestChainKeepsTheContractOfAStore(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) func() ledger.Store {
		c, err := newChain("os:lab", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return func() ledger.Store {
			c.closed = false
			return c
		}
	})
}

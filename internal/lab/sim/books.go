package sim

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// The monitor's own books of what was charged and what failed.

// paid keeps the books of DESIGN promise 4: the dearest outcome is charged and
// was left in both balances, and what failed too often waits for a reset.
func (m *monitor) paid(e ledger.Entry, b ledger.Claim) {
	if why := m.row(e.Service, b.Action.Name); why != "" {
		m.breaks("suspended-actions-wait", "%s runs %s, which %s", b.Key, b.Action.Name, why)
	}
	if b.Verdict != gate.Auto {
		if b.Charge != 0 {
			m.breaks("approved-is-free", "%s is charged %v", b.Key, b.Charge)
		}
		return
	}
	if b.Charge != costWorsened {
		m.breaks("claims-are-charged", "%s is charged %v, the dearest outcome costs %v", b.Key, b.Charge, costWorsened)
	}
	own := capacity - m.spent(e.Service, b.Action.Name, e.Time)
	global := globalCapacity - m.spent("", "", e.Time)
	if own < costWorsened || global < costWorsened {
		m.breaks("balance-never-negative", "%s costs %v, left are %v of its action and %v of all", b.Key, costWorsened, own, global)
	}
}

// spent is what counts against a budget; a charge that is about to age out may
// be gone on a host whose clock is ahead.
func (m *monitor) spent(service, action string, now time.Time) float64 {
	var since time.Time
	for _, r := range m.resets {
		if r.service == service && r.action == action {
			since = r.at
		}
	}
	sum := 0.0
	for _, key := range m.order {
		c := m.claims[key]
		mine := service == "" || c.service == service && c.Action.Name == action
		if mine && c.Verdict == gate.Auto && !c.at.Before(since) && now.Before(c.at.Add(period-apartBy)) {
			sum += c.charge()
		}
	}
	return sum
}

func (c claimed) charge() float64 {
	switch c.effect {
	case execute.Void, execute.NotLanded, execute.NoOp, execute.Failed, execute.NotNow:
		return 0
	}
	if c.outcome != "" {
		return c.cost
	}
	return costWorsened
}

// row says whether an action harmed twice or did nothing three times in a row
// since its last reset.
func (m *monitor) row(service, action string) string {
	var since time.Time
	for _, r := range m.resets {
		if r.service == service && (r.action == action || r.action == "") {
			since = r.at
		}
	}
	worse, nothing := 0, 0
	for _, key := range m.order {
		c := m.claims[key]
		if c.service == service && c.Action.Name == action && c.changedAt.After(since) {
			worse, nothing = c.rows(worse, nothing)
		}
	}
	switch {
	case worse >= 2:
		return fmt.Sprintf("worsened %d times in a row", worse)
	case nothing >= 3:
		return fmt.Sprintf("did nothing %d times in a row", nothing)
	}
	return ""
}

// rows goes on with the two rows by one effect.
func (c claimed) rows(worse, nothing int) (int, int) {
	switch c.effect {
	case execute.Failed, execute.NotNow, execute.NoOp:
		nothing++
	case execute.Applied, execute.AppliedWithError, execute.Landed:
		nothing = 0
	}
	switch c.outcome {
	case "":
	case compare.OutcomeWorsened:
		worse++
	default:
		worse = 0
	}
	return worse, nothing
}

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// monitor holds what happened against the invariants. It reads entries, sends
// and the actuator's journal in the order in which they happened, keeps its own
// books, and asks no State: what the fold gets wrong must not be believed here.
type monitor struct {
	step    int
	limits  gate.Limits
	checked int64
	broken  []Violation
	claims  map[gate.Key]claimed
	// order are the keys as they were claimed.
	order   []gate.Key
	tickets map[string]question
	freezes map[string]ledger.Freeze
	thawed  map[string]bool
	resets  []reset
	starts  []started
	sends   []sent
}

// claimed is one claim and what became of it.
type claimed struct {
	ledger.Claim
	service   string
	at        time.Time
	effect    execute.Effect
	by        string
	outcome   compare.Outcome
	cost      float64
	sends     int
	effects   int
	changedAt time.Time
}

// question is a ticket with its answers.
type question struct {
	approve.Ticket
	said    map[string]bool
	denied  bool
	ended   bool
	claimed bool
}

type reset struct {
	service, action string
	at              time.Time
}

type started struct {
	service string
	at      time.Time
}

// sent is one request that left a replica.
type sent struct {
	key    gate.Key
	digest string
	at     time.Time
}

func newMonitor(l gate.Limits) *monitor {
	return &monitor{
		limits: l,
		claims: map[gate.Key]claimed{}, tickets: map[string]question{},
		freezes: map[string]ledger.Freeze{}, thawed: map[string]bool{},
	}
}

func (m *monitor) breaks(invariant, format string, args ...any) {
	m.broken = append(m.broken, Violation{Step: m.step, Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// sortViolations puts the first seed first, whoever played it, and keeps the
// order within a seed.
func sortViolations(vs []Violation) {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Compare(a.Seed, b.Seed)
	})
}

// entry sees one appended entry; by is the replica, nil for a person.
func (m *monitor) entry(e ledger.Entry, body any, by *replica) {
	m.checked++
	switch b := body.(type) {
	case ledger.Claim:
		m.claim(e, b, by)
	case ledger.Started:
		m.started(e, b, by)
	case ledger.Void:
		m.void(e, b)
	case ledger.Receipt:
		m.receipt(e, b)
	case ledger.Settled:
		m.settled(e, b)
	case ledger.Outcome:
		m.outcome(e, b)
	case approve.Ticket:
		b.ID, b.Service = ledger.TicketID(e.Seq), e.Service
		m.tickets[b.ID] = question{Ticket: b, said: map[string]bool{}}
	case approve.Answer:
		m.answer(b)
	case ledger.TicketEnd:
		q := m.tickets[b.Ticket]
		q.ended = true
		m.tickets[b.Ticket] = q
	case ledger.Freeze:
		m.freezes[b.ID] = b
	case ledger.Thaw:
		m.thawed[b.ID] = true
	case ledger.Reset:
		m.resets = append(m.resets, reset{e.Service, b.Action, e.Time})
	}
}

// claim checks everything that must hold when a key is reserved.
func (m *monitor) claim(e ledger.Entry, b ledger.Claim, by *replica) {
	if _, twice := m.claims[b.Key]; twice {
		m.breaks("one-claim-per-key", "%s is claimed again by entry %d", b.Key, e.Seq)
		return
	}
	m.apartFromOthers(e, b)
	m.measured(b, by)
	for id, f := range m.freezes {
		if !m.thawed[id] && (f.Service == "" || f.Service == e.Service) {
			m.breaks("no-claim-while-frozen", "%s is claimed although %s is recorded", b.Key, id)
		}
	}
	m.allowed(e, b)
	m.paid(e, b)
	m.claims[b.Key] = claimed{Claim: b, service: e.Service, at: e.Time, effect: execute.Claimed, changedAt: e.Time}
	m.order = append(m.order, b.Key)
}

// apartFromOthers: one unsettled effect on a service and on a target, windows
// that never go back, and no permit that lives too long.
func (m *monitor) apartFromOthers(e ledger.Entry, b ledger.Claim) {
	for _, key := range m.order {
		c := m.claims[key]
		if c.unsettled() && (c.service == e.Service || c.Target == b.Target) {
			m.breaks("one-unsettled-effect", "%s is claimed while %s is %s on %s", b.Key, key, c.effect, c.Target)
		}
		if c.service == e.Service && windowOf(key).Start >= windowOf(b.Key).Start {
			m.breaks("windows-never-decrease", "%s is claimed after %s", b.Key, key)
		}
	}
	if b.Expires.After(e.Time.Add(m.limits.PermitTTL + apartBy)) {
		m.breaks("permits-are-short", "%s may be sent until %s", b.Key, clock(b.Expires))
	}
}

func (c claimed) unsettled() bool {
	switch c.effect {
	case execute.Claimed, execute.Started, execute.InDoubt, execute.Unknown:
		return true
	case execute.Applied, execute.AppliedWithError, execute.Landed:
		return c.outcome == ""
	}
	return false
}

// measured: only a known, burning breach, seen twice, with clocks together.
func (m *monitor) measured(b ledger.Claim, by *replica) {
	if by == nil {
		return
	}
	p := by.pass
	if p.real.state != compare.Breached || p.real.reason != compare.Burning || b.State != compare.Breached {
		m.breaks("no-claim-on-unknown", "%s is claimed on %s %s, recorded as %s", b.Key, p.real.state, p.real.reason, b.State)
	}
	if p.skewed {
		m.breaks("no-claim-with-clocks-apart", "%s is claimed by a host that is %s ahead", b.Key, by.skew)
	}
	if by.reads[p.i].n < 2 {
		m.breaks("two-fresh-reads", "%s is claimed after %d reads", b.Key, by.reads[p.i].n)
	}
	if on := p.svc.Remediation.DependsOn; len(on) > 0 && p.others[on[0]] != compare.Met {
		m.breaks("dependencies-first", "%s is claimed while %s is %s", b.Key, on[0], p.others[on[0]])
	}
}

// allowed: auto by itself, anything else by one approved ticket for these
// bytes, used once.
func (m *monitor) allowed(e ledger.Entry, b ledger.Claim) {
	if b.Ticket == "" {
		if b.Verdict != gate.Auto {
			m.breaks("permission", "%s is claimed by verdict %s without a ticket", b.Key, b.Verdict)
		}
		for id, q := range m.tickets {
			if q.Service == e.Service && q.Key == b.Key && !q.ended && !q.denied {
				m.breaks("tickets-reserve-their-key", "%s is claimed although %s is open", b.Key, id)
			}
		}
		return
	}
	q := m.tickets[b.Ticket]
	switch {
	case q.claimed:
		m.breaks("one-claim-per-ticket", "%s is consumed again by %s", b.Ticket, b.Key)
	case q.Key != b.Key || q.Digest != b.Digest:
		m.breaks("approval-binds-bytes", "%s approved %.12s under %s, claimed is %.12s under %s", b.Ticket, q.Digest, q.Key, b.Digest, b.Key)
	case q.denied || q.ended || !q.agreed():
		m.breaks("approval-is-needed", "%s is claimed by %s, which nobody approved (denied %t, ended %t)", b.Key, b.Ticket, q.denied, q.ended)
	}
	q.claimed = true
	m.tickets[b.Ticket] = q
}

// answer counts principals, by its own list of who is who.
func (m *monitor) answer(a approve.Answer) {
	q := m.tickets[a.Ticket]
	if q.ended || !slices.Contains([]string{"os:alice", "os:bob"}, a.By) || !a.At.Before(q.Expires) && !q.agreed() {
		return
	}
	if a.Approve {
		q.said[a.By] = true
	} else {
		q.denied = true
	}
	m.tickets[a.Ticket] = q
}

func (q question) agreed() bool {
	for _, n := range q.Needs {
		if len(q.said) < max(1, n.Quorum) {
			return false
		}
	}
	return len(q.Needs) > 0
}

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
		if c.service != service || c.Action.Name != action || !c.changedAt.After(since) {
			continue
		}
		switch c.effect {
		case execute.Failed, execute.NotNow, execute.NoOp:
			nothing++
		case execute.Applied, execute.AppliedWithError, execute.Landed:
			nothing = 0
		}
		if c.outcome == compare.OutcomeWorsened {
			worse++
		} else if c.outcome != "" {
			worse = 0
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

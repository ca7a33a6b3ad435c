package sim

import (
	"cmp"
	"fmt"
	"maps"
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
		m.outcome(b)
	default:
		m.people(e, body)
	}
}

// people sees what people were asked and said.
func (m *monitor) people(e ledger.Entry, body any) {
	switch b := body.(type) {
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
	if id := m.frozen(e.Service); id != "" {
		m.breaks("no-claim-while-frozen", "%s is claimed although %s is recorded", b.Key, id)
	}
	m.allowed(e, b)
	m.paid(e, b)
	m.claims[b.Key] = claimed{Claim: b, service: e.Service, at: e.Time, effect: execute.Claimed, changedAt: e.Time}
	m.order = append(m.order, b.Key)
}

// frozen names a recorded freeze that stands; "" without one.
func (m *monitor) frozen(service string) string {
	for _, id := range slices.Sorted(maps.Keys(m.freezes)) {
		if f := m.freezes[id]; !m.thawed[id] && (f.Service == "" || f.Service == service) {
			return id
		}
	}
	return ""
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
		m.alone(e.Service, b)
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

func (m *monitor) alone(service string, b ledger.Claim) {
	if b.Verdict != gate.Auto {
		m.breaks("permission", "%s is claimed by verdict %s without a ticket", b.Key, b.Verdict)
	}
	for id, q := range m.tickets {
		if q.Service == service && q.Key == b.Key && !q.ended && !q.denied {
			m.breaks("tickets-reserve-their-key", "%s is claimed although %s is open", b.Key, id)
		}
	}
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

package sim

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// The monitor's part about what follows a claim: started, sends, effects and
// how it ends.

func (m *monitor) started(e ledger.Entry, b ledger.Started, by *replica) {
	c, ok := m.claims[b.Key]
	if !ok || c.effect != execute.Claimed {
		m.breaks("started-follows-claim", "%s is started, it was %s", b.Key, c.effect)
		return
	}
	if p := by.pass; p.mono.Before(c.at) || p.real.state != compare.Breached || p.real.reason != compare.Burning {
		m.breaks("gated-again-before-start", "%s is started on what was seen at %s (%s %s), claimed at %s",
			b.Key, clock(p.mono), p.real.state, p.real.reason, clock(c.at))
	}
	if id := m.frozen(c.service); id != "" {
		m.breaks("no-start-while-frozen", "%s is started although %s is recorded", b.Key, id)
	}
	m.pace(e, c)
	if q := m.tickets[c.Ticket]; c.Ticket != "" && (q.denied || q.ended) {
		m.breaks("a-deny-stops-it", "%s is started although %s was denied or ended before", b.Key, c.Ticket)
	}
	m.starts = append(m.starts, started{c.service, e.Time})
	m.become(b.Key, execute.Started, e.Time)
}

// pace: effects of a service are spaced, and caps hold over any hour.
func (m *monitor) pace(e ledger.Entry, c claimed) {
	service, all := 0, 0
	for _, s := range m.starts {
		if s.service == c.service && e.Time.Sub(s.at) < m.limits.MinSpacing-apartBy {
			m.breaks("min-spacing", "%s is started %s after the one before", c.Key, e.Time.Sub(s.at))
		}
		if e.Time.Sub(s.at) < time.Hour-apartBy {
			all++
			if s.service == c.service {
				service++
			}
		}
	}
	if l := m.limits; service >= l.EffectsPerServicePerHour || all >= l.EffectsPerHour {
		m.breaks("caps", "%s is number %d of the service and %d of all within the hour", c.Key, service+1, all+1)
	}
}

func (m *monitor) become(key gate.Key, effect execute.Effect, at time.Time) {
	c := m.claims[key]
	c.effect, c.changedAt = effect, at
	m.claims[key] = c
}

func (m *monitor) void(e ledger.Entry, b ledger.Void) {
	if c := m.claims[b.Key]; c.effect != execute.Claimed {
		m.breaks("void-before-start-only", "%s is void, it was %s", b.Key, c.effect)
	}
	m.become(b.Key, execute.Void, e.Time)
	m.refund(b.Key)
}

func (m *monitor) receipt(e ledger.Entry, b ledger.Receipt) {
	if c := m.claims[b.Key]; c.effect != execute.Started {
		m.breaks("receipt-follows-start", "%s has a receipt, it was %s", b.Key, c.effect)
	}
	m.become(b.Key, b.Receipt.Effect, e.Time)
	m.refund(b.Key)
}

func (m *monitor) settled(e ledger.Entry, b ledger.Settled) {
	c := m.claims[b.Key]
	again := c.effect == execute.Unknown && b.By != ledger.SettledByObservation && b.By != "setpoint"
	if c.effect != execute.Started && c.effect != execute.InDoubt && !again {
		m.breaks("settled-once", "%s is settled as %s by %s, it was %s", b.Key, b.Effect, b.By, c.effect)
	}
	c.by = b.By
	m.claims[b.Key] = c
	m.become(b.Key, b.Effect, e.Time)
	m.refund(b.Key)
}

// refund: what is free did nothing. A person's word is taken.
func (m *monitor) refund(key gate.Key) {
	if c := m.claims[key]; c.free() && c.effects > 0 {
		m.breaks("refund-needs-proof", "%s is %s, the actuator did it", key, c.effect)
	}
}

func (c claimed) free() bool {
	switch c.effect {
	case execute.Void, execute.Failed, execute.NoOp, execute.NotNow:
		return true
	case execute.NotLanded:
		return c.by == ledger.SettledByObservation
	}
	return false
}

func (m *monitor) outcome(b ledger.Outcome) {
	c := m.claims[b.Key]
	if !c.effect.Judged() || c.outcome != "" {
		m.breaks("one-outcome", "%s is judged %s, it is %s and was judged %q", b.Key, b.Judgement.Outcome, c.effect, c.outcome)
	}
	want := map[compare.Outcome]float64{
		compare.OutcomeNoChange: costNoChange, compare.OutcomeWorsened: costWorsened, compare.OutcomeUnknown: costUnknown,
	}[b.Judgement.Outcome]
	if c.Verdict == gate.Auto && b.Cost != want {
		m.breaks("outcomes-cost", "%s was judged %s and costs %v, want %v", b.Key, b.Judgement.Outcome, b.Cost, want)
	}
	c.outcome, c.cost = b.Judgement.Outcome, b.Cost
	m.claims[b.Key] = c
}

// lastLook is the moment before a send: the host's freeze files bind.
func (m *monitor) lastLook(r *replica, key gate.Key, service string) {
	if slices.ContainsFunc(r.files, func(f ledger.Freeze) bool { return f.Service == "" || f.Service == service }) {
		m.breaks("no-send-while-frozen", "%s is sent although its host holds a freeze file", key)
	}
}

// sent sees a request leave.
func (m *monitor) sent(msg message) {
	m.checked++
	c, ok := m.claims[msg.key]
	switch {
	case !ok:
		m.breaks("claim-before-send", "%s is sent and was never claimed", msg.key)
	case c.effect != execute.Started:
		m.breaks("started-before-send", "%s is sent while it is %s", msg.key, c.effect)
	case c.Digest != msg.digest:
		m.breaks("sent-bytes-were-claimed", "%s is sent as %.12s, claimed was %.12s", msg.key, msg.digest, c.Digest)
	case c.sends > 0:
		m.breaks("never-resend", "%s is sent again", msg.key)
	case msg.sent.After(c.Expires.Add(apartBy)):
		m.breaks("no-send-after-expiry", "%s is sent at %s, its permit ended at %s", msg.key, clock(msg.sent), clock(c.Expires))
	}
	if ok {
		c.sends++
		m.claims[msg.key] = c
	}
	m.sends = append(m.sends, sent{msg.key, msg.digest, msg.sent})
}

// effect sees a line of the actuator's journal.
func (m *monitor) effect(f effect) {
	m.checked++
	c, ok := m.claims[f.key]
	switch {
	case !ok:
		m.breaks("claim-before-effect", "the actuator did %s, which was never claimed", f.key)
		return
	case c.effects > 0:
		m.breaks("one-effect-per-key", "the actuator did %s again", f.key)
	case c.Digest != f.digest || c.Target != f.target:
		m.breaks("effect-is-what-was-claimed", "the actuator did %.12s on %s for %s", f.digest, f.target, f.key)
	case c.free():
		m.breaks("refund-needs-proof", "the actuator did %s after it was settled as %s", f.key, c.effect)
	}
	c.effects++
	m.claims[f.key] = c
}

// clone lets two worlds go on apart.
func (m *monitor) clone() *monitor {
	c := *m
	c.broken, c.order = slices.Clip(m.broken), slices.Clip(m.order)
	c.resets, c.starts, c.sends = slices.Clip(m.resets), slices.Clip(m.starts), slices.Clip(m.sends)
	c.claims, c.tickets = copied(m.claims), copied(m.tickets)
	for id, q := range c.tickets {
		q.said = copied(q.said)
		c.tickets[id] = q
	}
	c.freezes, c.thawed = copied(m.freezes), copied(m.thawed)
	return &c
}

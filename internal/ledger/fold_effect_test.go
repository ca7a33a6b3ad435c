package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// lived is what became of one effect.
type lived struct {
	Effect  execute.Effect
	Outcome compare.Outcome
	Locked  bool
	Charge  float64
	Applied int
	Skipped int
}

func TestFoldEffect(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	claimed := at(1, claim(c, claimOf(k)))
	undone := at(1, claim(c, claimOf(k, func(c *ledger.Claim) { c.Undo = true })))
	approved := at(1, claim(c, claimOf(k, func(c *ledger.Claim) { c.Verdict = gate.Approval })))
	begun, applied := at(2, started(c, k)), at(3, receipt(c, k, execute.Applied, 3))
	tests := map[string]struct {
		reason string
		steps  []step
		want   lived
	}{
		"claimed":       {"a claim charges the dearest outcome", []step{claimed}, lived{execute.Claimed, "none", true, 2, never, 0}},
		"claimed twice": {"a key is claimed once", []step{claimed, claimed}, lived{execute.Claimed, "none", true, 2, never, 1}},
		"void":          {"a void claim is refunded", []step{claimed, at(2, void(c, k))}, lived{execute.Void, "none", false, 0, never, 0}},
		"void, started": {"what is void is never started", []step{claimed, at(2, void(c, k)), begun}, lived{execute.Void, "none", false, 0, never, 1}},
		"started":       {"a start without a receipt is in doubt", []step{claimed, begun}, lived{execute.Started, "none", true, 2, never, 0}},
		"started, void": {"what was started is never void", []step{claimed, begun, at(2, void(c, k))}, lived{execute.Started, "none", true, 2, never, 1}},
		"started twice": {"nothing is sent twice", []step{claimed, begun, begun}, lived{execute.Started, "none", true, 2, never, 1}},
		"no claim":      {"a receipt without a start changes nothing", []step{claimed, applied}, lived{execute.Claimed, "none", true, 2, never, 1}},
		"applied":       {"applied waits for its outcome", []step{claimed, begun, applied}, lived{execute.Applied, "pending", true, 2, 3, 0}},
		"error":         {"applied with an error is judged alike", []step{claimed, begun, at(3, receipt(c, k, execute.AppliedWithError, 3))}, lived{execute.AppliedWithError, "pending", true, 2, 3, 0}},
		"receipt twice": {"the first receipt stays", []step{claimed, begun, applied, at(4, receipt(c, k, execute.Failed, 4))}, lived{execute.Applied, "pending", true, 2, 3, 1}},
		"no-op":         {"a no-op costs nothing", []step{claimed, begun, at(3, receipt(c, k, execute.NoOp, 3))}, lived{execute.NoOp, "none", false, 0, never, 0}},
		"failed":        {"a failure costs nothing", []step{claimed, begun, at(3, receipt(c, k, execute.Failed, 3))}, lived{execute.Failed, "none", false, 0, never, 0}},
		"not now":       {"a refusal costs nothing", []step{claimed, begun, at(3, receipt(c, k, execute.NotNow, 3))}, lived{execute.NotNow, "none", false, 0, never, 0}},
		"in doubt":      {"a lost reply locks and stays charged", []step{claimed, begun, at(3, receipt(c, k, execute.InDoubt, 3))}, lived{execute.InDoubt, "none", true, 2, never, 0}},
		"landed": {
			"found applied counts from the horizon",
			[]step{claimed, begun, at(9, settled(c, k, execute.Landed, "observation"))},
			lived{execute.Landed, "pending", true, 2, 602, 0},
		},
		"not landed":    {"proven not landed is refunded", []step{claimed, begun, at(9, settled(c, k, execute.NotLanded, "observation"))}, lived{execute.NotLanded, "none", false, 0, never, 0}},
		"settled no-op": {"found without effect is refunded", []step{claimed, begun, at(9, settled(c, k, execute.NoOp, "observation"))}, lived{execute.NoOp, "none", false, 0, never, 0}},
		"settled twice": {
			"the first settlement stays",
			[]step{claimed, begun, at(9, settled(c, k, execute.NotLanded, "observation")), at(10, settled(c, k, execute.Landed, "os:alice"))},
			lived{execute.NotLanded, "none", false, 0, never, 1},
		},
		"late receipt": {
			"a receipt after the settlement changes nothing",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation")), at(10, receipt(c, k, execute.Applied, 3))},
			lived{execute.Unknown, "none", true, 2, never, 1},
		},
		"unknown": {
			"unknown locks and stays charged",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation"))},
			lived{execute.Unknown, "none", true, 2, never, 0},
		},
		"unknown, found by a person": {
			"a named person ends unknown",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation")), at(30, settled(c, k, execute.NotLanded, "os:alice"))},
			lived{execute.NotLanded, "none", false, 0, never, 0},
		},
		"unknown, landed": {
			"and may say that it landed, which is then judged",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation")), at(30, settled(c, k, execute.Landed, "os:alice"))},
			lived{execute.Landed, "pending", true, 2, 602, 0},
		},
		"unknown, machine": {
			"no machine ends unknown",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation")), at(30, settled(c, k, execute.NotLanded, "observation"))},
			lived{execute.Unknown, "none", true, 2, never, 1},
		},
		"unknown, vague": {
			"a person says landed or not",
			[]step{claimed, begun, at(9, settled(c, k, execute.Unknown, "observation")), at(30, settled(c, k, execute.NoOp, "os:alice"))},
			lived{execute.Unknown, "none", true, 2, never, 1},
		},
		"improved":      {"help costs nothing", []step{claimed, begun, applied, at(9, outcome(c, k, "improved", 0))}, lived{execute.Applied, "improved", false, 0, 3, 0}},
		"no change":     {"the outcome's cost replaces the charge", []step{claimed, begun, applied, at(9, outcome(c, k, "no-change", 1))}, lived{execute.Applied, "no-change", false, 1, 3, 0}},
		"worsened":      {"harm keeps it", []step{claimed, begun, applied, at(9, outcome(c, k, "worsened", 2))}, lived{execute.Applied, "worsened", false, 2, 3, 0}},
		"outcome twice": {"an effect is judged once", []step{claimed, begun, applied, at(9, outcome(c, k, "no-change", 1)), at(10, outcome(c, k, "improved", 0))}, lived{execute.Applied, "no-change", false, 1, 3, 1}},
		"early outcome": {"nothing is judged before it applied", []step{claimed, begun, at(9, outcome(c, k, "improved", 0))}, lived{execute.Started, "none", true, 2, never, 1}},
		"approved":      {"what a person approved is charged nothing", []step{approved}, lived{execute.Claimed, "none", true, 0, never, 0}},
		"approved, worsened": {
			"whatever it did",
			[]step{approved, begun, applied, at(9, outcome(c, k, "worsened", 2))}, lived{execute.Applied, "worsened", false, 0, 3, 0},
		},
		"undo":           {"an undo is not charged at the claim", []step{undone}, lived{execute.Claimed, "none", true, 0, never, 0}},
		"undo, helpless": {"nor when it did not help", []step{undone, begun, applied, at(9, outcome(c, k, "no-change", 1))}, lived{execute.Applied, "no-change", false, 0, 3, 0}},
		"undo, worsened": {"but with an outcome that is Worsened", []step{undone, begun, applied, at(9, outcome(c, k, "worsened", 2))}, lived{execute.Applied, "worsened", false, 2, 3, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, at(0, decided(c, windowAt(0), gate.Decision{Verdict: gate.Auto})))
			for _, st := range tt.steps {
				if b, ok := st.draft.Body.(ledger.Claim); ok {
					b.Decision = "d2"
					st.draft.Body = b
				}
				ch.add(st)
			}
			s := ch.state
			e := *s.Effects[k]
			got := lived{e.Effect, e.Outcome, e.Locked(), e.Charge(), minuteOf(e.AppliedAt), len(s.Skipped)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
			}
			d := s.Decisions["d2"]
			if d.Effect != e.Effect || d.Outcome != e.Outcome || d.Charge != e.Charge() {
				t.Errorf("the decision says %s, %s, %v and its effect %s, %s, %v", d.Effect, d.Outcome, d.Charge, e.Effect, e.Outcome, e.Charge())
			}
			if onService, onTarget := s.InFlight(c, "other"); (onService != nil) != e.Locked() || onTarget != nil {
				t.Errorf("in flight %v, %v, want locked %v and another target free", onService, onTarget, e.Locked())
			}
			if _, onTarget := s.InFlight("search", scale.Canonical()); (onTarget != nil) != e.Locked() {
				t.Errorf("in flight on the target %v, want locked %v", onTarget, e.Locked())
			}
		})
	}
}

func TestCharges(t *testing.T) {
	c := newChain(t)
	c.add(at(1, claim("a", claimOf(keyAt("a", 0), func(c *ledger.Claim) { c.Decision = "d9" }))), at(1, started("a", keyAt("a", 0))),
		at(2, receipt("a", keyAt("a", 0), execute.Applied, 2)), at(9, outcome("a", keyAt("a", 0), "no-change", 1)))
	c.add(at(10, claim("b", claimOf(keyAt("b", 10), func(c *ledger.Claim) { c.Verdict = gate.Approval }))))
	c.add(at(11, claim("c", claimOf(keyAt("c", 10)))))
	want := []budget.Charge{
		{Service: "a", Action: "scale", Decision: "d9", At: minute(1), Cost: 1, Outcome: "no-change"},
		{Service: "c", Action: "scale", At: minute(11), Cost: 2, Outcome: "none"},
	}
	if diff := cmp.Diff(want, c.state.Charges()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSent(t *testing.T) {
	c := newChain(t)
	for i, service := range []string{"a", "b", "a"} {
		m := 10 * i
		c.add(at(m, claim(service, claimOf(keyAt(service, m)))), at(m+1, started(service, keyAt(service, m))))
	}
	c.add(at(30, claim("a", claimOf(keyAt("a", 30)))))
	for _, tt := range []struct {
		service string
		since   int
		want    int
	}{{"", 0, 3}, {"", 1, 3}, {"", 2, 2}, {"a", 0, 2}, {"a", 21, 1}, {"a", 22, 0}, {"b", 0, 1}, {"c", 0, 0}} {
		if got := c.state.Sent(tt.service, minute(tt.since)); got != tt.want {
			t.Errorf("sent of %q since minute %d: %d, want %d", tt.service, tt.since, got, tt.want)
		}
	}
	if got := minuteOf(c.state.LastSent("a", "scale")); got != 21 {
		t.Errorf("last sent at %d, want 21", got)
	}
	if got := minuteOf(c.state.LastSent("a", "restart")); got != never {
		t.Errorf("an action that was never sent was sent at %d", got)
	}
}

func TestSuspended(t *testing.T) {
	// Each letter is one effect, in turn: w(orsened), n(o change), p(ending),
	// f(ailed), o (no-op), t (not now), v(oid), u(ndo that worsened), x (an
	// approved one that worsened); r is a reset of the action, R of the service,
	// g of the global budget.
	tests := map[string]struct {
		reason, life string
		want         bool
	}{
		"none":            {"nothing happened", "", false},
		"one":             {"once is no row", "w", false},
		"two":             {"two in a row", "ww", true},
		"approved":        {"whoever allowed it", "wx", true},
		"broken":          {"another outcome breaks the row", "wnw", false},
		"old row":         {"a row that was broken since", "wwn", false},
		"undo between":    {"an undo does not break it", "wuw", true},
		"undo":            {"nor make one", "wu", false},
		"pending between": {"what is not judged does not break it", "wpw", true},
		"failed between":  {"what did nothing does not break it", "wffw", true},
		"three nothings":  {"three that did nothing", "fot", true},
		"two nothings":    {"two are not enough", "ff", false},
		"applied between": {"one that applied breaks the row", "ffpf", false},
		"void between":    {"a void claim does not", "fvff", true},
		"reset":           {"a reset ends it", "wwr", false},
		"reset one":       {"only what came after a reset counts", "wrw", false},
		"after reset":     {"which may be two again", "wrww", true},
		"service reset":   {"a reset of the service is of all its actions", "wwR", false},
		"global reset":    {"one of the global budget is of none", "wwg", true},
		"nothings reset":  {"and ends the other row too", "fffr", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newChain(t)
			for i, letter := range tt.life {
				live(c, 10*(i+1), letter)
			}
			c.noSkips()
			if got := c.state.Suspended("checkout", "scale", minute(9999)); (got != "") != tt.want {
				t.Errorf("%s: suspended %q, want %v", tt.reason, got, tt.want)
			}
			if got := c.state.Suspended("checkout", "restart", minute(9999)); got != "" {
				t.Errorf("another action is suspended: %s", got)
			}
		})
	}
}

func live(c *chain, m int, letter rune) {
	const s = "checkout"
	k := keyAt(s, m)
	switch letter {
	case 'r':
		c.add(at(m, reset(s, "scale")))
		return
	case 'R':
		c.add(at(m, reset(s, "")))
		return
	case 'g':
		c.add(at(m, reset("", "")))
		return
	}
	c.add(at(m, claim(s, claimOf(k, func(c *ledger.Claim) {
		c.Undo = letter == 'u'
		if letter == 'x' {
			c.Verdict = gate.Approval
		}
	}))))
	if letter == 'v' {
		c.add(at(m, void(s, k)))
		return
	}
	effects := map[rune]execute.Effect{'f': execute.Failed, 'o': execute.NoOp, 't': execute.NotNow}
	effect, ok := effects[letter]
	if !ok {
		effect = execute.Applied
	}
	c.add(at(m, started(s, k)), at(m, receipt(s, k, effect, m)))
	switch letter {
	case 'w', 'u', 'x':
		c.add(at(m+5, outcome(s, k, "worsened", 2)))
	case 'n':
		c.add(at(m+5, outcome(s, k, "no-change", 1)))
	}
}

func TestFoldTicket(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	asked := at(1, ticket(c, k))
	claimed := at(3, claim(c, claimOf(k, func(c *ledger.Claim) { c.Ticket, c.Verdict = "t2", gate.Approval })))
	yes, no := at(2, answer("t2", "os:alice", true, 2)), at(2, answer("t2", "os:bob", false, 2))
	tests := map[string]struct {
		reason  string
		steps   []step
		state   approve.State
		open    bool
		answers int
		skipped int
	}{
		"asked":             {"open until somebody answers", []step{asked}, "open", true, 0, 0},
		"approved":          {"approved waits for its claim", []step{asked, yes}, "approved", true, 1, 0},
		"claimed":           {"a claimed ticket is not open any more", []step{asked, yes, claimed}, "approved", false, 1, 0},
		"denied":            {"a denial closes it", []step{asked, no}, "denied", false, 1, 0},
		"denied, approved":  {"the first answer is final", []step{asked, no, yes}, "denied", false, 1, 1},
		"approved, denied":  {"a denial still stops what was not started", []step{asked, yes, no}, "denied", false, 2, 0},
		"started, denied":   {"and nothing that was", []step{asked, yes, claimed, at(4, started(c, k)), at(5, answer("t2", "os:bob", false, 5))}, "approved", false, 1, 1},
		"expired":           {"an expiry closes it", []step{asked, at(2, ticketEnd("t2", "expired"))}, "expired", false, 0, 0},
		"expired, approved": {"an answer after that changes nothing", []step{asked, at(2, ticketEnd("t2", "expired")), yes}, "expired", false, 0, 1},
		"approved, void":    {"an approved one can become void", []step{asked, yes, at(3, ticketEnd("t2", "void"))}, "void", false, 1, 0},
		"started, void":     {"one that was executed cannot", []step{asked, yes, claimed, at(4, started(c, k)), at(5, ticketEnd("t2", "void"))}, "approved", false, 1, 1},
		"second":            {"a service has one open ticket", []step{asked, at(2, ticket(c, keyAt(c, 10)))}, "open", true, 0, 1},
		"next":              {"and another after that", []step{asked, no, at(2, ticket(c, keyAt(c, 10)))}, "denied", true, 1, 0},
		"stranger":          {"an answer without a ticket changes nothing", []step{asked, at(2, answer("t9", "os:alice", true, 2))}, "open", true, 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newChain(t, tt.steps...).state
			got := s.Tickets["t2"]
			o, open := s.OpenTicket(c)
			if got.State != tt.state || open != tt.open || len(got.Answers) != tt.answers || len(s.Skipped) != tt.skipped {
				t.Errorf("%s: %s, open %v, %d answers, skipped %v; want %s, %v, %d, %d",
					tt.reason, got.State, open, len(got.Answers), s.Skipped, tt.state, tt.open, tt.answers, tt.skipped)
			}
			waiting := 0
			if open && o.State == approve.Open {
				waiting = 1
			}
			if n := s.OpenTickets(); n != waiting {
				t.Errorf("%d tickets wait for people, want %d", n, waiting)
			}
			refused := got.State == approve.Denied || got.State == approve.Expired
			if rs := s.Refused(c, "e2"); (len(rs) == 1) != refused {
				t.Errorf("refused tickets %v, want it there: %v", rs, refused)
			}
			if rs := s.Refused(c, "e3"); len(rs) != 0 {
				t.Errorf("refused tickets of another episode: %v", rs)
			}
		})
	}
}

func TestFoldPages(t *testing.T) {
	page := func(p escalate.Page) ledger.Draft { return ledger.Draft{Kind: ledger.KindPage, Body: p} }
	end := func(id string) ledger.Draft {
		return ledger.Draft{Kind: ledger.KindPageEnd, Body: ledger.PageEnd{Page: id, Reason: "recovered"}}
	}
	held := func(receiver string, ended bool) ledger.Draft {
		return ledger.Draft{Kind: ledger.KindDelivery, Body: escalate.Delivery{Page: "p", Receiver: receiver, Ended: ended}}
	}
	ack := ledger.Draft{Kind: ledger.KindAck, Body: ledger.Ack{Page: "p", By: "os:alice", Via: "cli"}}
	first := page(escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1)})
	second := page(escalate.Page{ID: "p", Reason: "cannot-act", Now: "cannot-act", Since: minute(9)})
	tests := map[string]struct {
		reason  string
		steps   []step
		want    escalate.Page
		held    []string
		skipped int
	}{
		"opened":     {"as it was opened", []step{at(1, first)}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1)}, nil, 0},
		"changed":    {"its identity stays while it is open", []step{at(1, first), at(9, second)}, escalate.Page{ID: "p", Reason: "blind", Now: "cannot-act", Since: minute(1)}, nil, 0},
		"acked":      {"an acknowledgement stands", []step{at(1, first), at(2, ack), at(9, second)}, escalate.Page{ID: "p", Reason: "blind", Now: "cannot-act", Since: minute(1), AckedBy: "os:alice", AckedVia: "cli", AckedAt: minute(2)}, nil, 0},
		"ended":      {"ended once", []step{at(1, first), at(5, end("p")), at(6, end("p"))}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1), EndedAt: minute(5), EndReason: "recovered"}, nil, 1},
		"ack late":   {"nobody acknowledges what ended", []step{at(1, first), at(5, end("p")), at(6, ack)}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1), EndedAt: minute(5), EndReason: "recovered"}, nil, 1},
		"delivered":  {"the last delivery of each receiver", []step{at(1, first), at(2, held("a", false)), at(3, held("b", false)), at(4, held("a", true))}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1)}, []string{"a ended", "b"}, 0},
		"reopened":   {"opened again is a new page, and whoever had its end holds nothing", []step{at(1, first), at(2, ack), at(2, held("a", true)), at(3, held("b", false)), at(5, end("p")), at(9, second)}, escalate.Page{ID: "p", Reason: "cannot-act", Now: "cannot-act", Since: minute(9)}, []string{"b"}, 0},
		"no page":    {"a delivery of no page", []step{at(0, held("a", false)), at(1, first)}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1)}, nil, 1},
		"acked once": {"the first acknowledgement stays", []step{at(1, first), at(2, ack), at(3, ack)}, escalate.Page{ID: "p", Reason: "blind", Now: "blind", Since: minute(1), AckedBy: "os:alice", AckedVia: "cli", AckedAt: minute(2)}, nil, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newChain(t, tt.steps...).state
			if diff := cmp.Diff(tt.want, *s.Pages["p"]); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
			}
			var got []string
			for _, name := range []string{"a", "b"} {
				if d, ok := s.Deliveries["p"][name]; ok && d.Ended {
					got = append(got, name+" ended")
				} else if ok {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(tt.held, got); diff != "" || len(s.Skipped) != tt.skipped {
				t.Errorf("%s: skipped %v, want %d; deliveries -want +got:\n%s", tt.reason, s.Skipped, tt.skipped, diff)
			}
		})
	}
}

// TestHorizon: until when a request may still land depends on whether it is known
// when it was sent. timeout and maxLateness are a minute each.
func TestHorizon(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	tests := map[string]struct {
		reason  string
		expires time.Time
		steps   []step
		want    time.Time
	}{
		"never started": {"it was not sent", minute(2), nil, time.Time{}},
		"stopped":       {"who started it may wake and send until the permit expires", minute(9), []step{at(3, started(c, k))}, minute(11).Add(5 * time.Second)},
		"expired":       {"at the start there was nothing left of the permit", minute(2), []step{at(3, started(c, k))}, minute(5)},
		"answered": {
			"with a receipt it was sent, however late the answer came", minute(9),
			[]step{at(3, started(c, k)), at(4, receipt(c, k, execute.InDoubt, 4))}, minute(5),
		},
		"late answer": {
			"which is then later than the deadline", minute(9),
			[]step{at(3, started(c, k)), at(7, receipt(c, k, execute.InDoubt, 7))}, minute(8),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, at(1, claim(c, claimOf(k, func(b *ledger.Claim) { b.Expires = tt.expires }))))
			for _, st := range tt.steps {
				ch.add(st)
			}
			if got := ch.state.Effects[k].Horizon(); !got.Equal(tt.want) {
				t.Errorf("%s: horizon %s, want %s", tt.reason, got, tt.want)
			}
		})
	}
}

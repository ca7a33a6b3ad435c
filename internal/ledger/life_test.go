package ledger_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// checks sets how many cases rapid draws, unless the command line did: a case
// with thousands of entries is worth many small ones.
func checks(t *testing.T, n string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// life makes a long chain of small services on which things are done and
// mostly end, by the drafts that the product uses. Its time goes on by minutes,
// hours and days.
type life struct {
	t testing.TB
	*rand.Rand
	state   *ledger.State
	now     time.Time
	names   []string
	actions []string
	// entries are those made, if keep says so.
	entries []ledger.Entry
	keep    bool
	// freezes counts them for their ids; pages likewise.
	freezes, pages int
}

func newLife(t testing.TB, seed uint64, s *ledger.State, keep bool) *life {
	l := &life{
		t: t, Rand: rand.New(rand.NewPCG(seed, 7)), state: s, now: start,
		names: []string{"a", "b"}, actions: []string{"scale", "restart"}, keep: keep,
	}
	l.add(ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}})
	l.add(documents(map[string]string{"a": "1", "b": "1"}))
	return l
}

func (l *life) add(ds ...ledger.Draft) {
	l.t.Helper()
	for _, d := range ds {
		e, err := ledger.Link(l.state.Head, l.now, d)
		if err != nil {
			l.t.Fatal(err)
		}
		if err := l.state.Apply(e); err != nil {
			l.t.Fatal(err)
		}
		if l.keep {
			l.entries = append(l.entries, e)
		}
	}
}

// try appends a draft whose condition holds.
func (l *life) try(d ledger.Draft, err error) {
	if err == nil {
		l.add(d)
	}
}

func (l *life) one(n int) bool { return l.IntN(n) == 0 }

func pick[T any](l *life, of ...T) T { return of[l.IntN(len(of))] }

// step appends one or a few entries.
func (l *life) step() {
	l.now = l.now.Add(pick(l, time.Second, time.Minute, 5*time.Minute, 20*time.Minute))
	if l.one(10) {
		l.now = l.now.Add(pick(l, 3*time.Hour, 40*time.Hour))
	}
	if l.one(60) {
		l.now = l.now.Add(10 * 24 * time.Hour)
	}
	service := pick(l, l.names...)
	switch n := l.IntN(40); {
	case n == 0:
		l.people(service)
	case n == 1:
		l.page(service)
	case n == 2 && l.one(10):
		l.clockAhead(service)
	case n < 8:
		l.measure(service)
	default:
		l.act(service)
	}
}

func (l *life) measure(service string) {
	sv, _ := l.state.Service(service)
	if sv.State == met && sv.Episode != "" {
		l.try(ledger.RecoveredDraft(l.state, service))
		return
	}
	l.try(ledger.StateDraft(l.state, service, ledger.StateChange{To: pick(l, met, breached, breached, breached, unknown), By: "one"}))
	if l.one(9) {
		l.add(gap())
	}
	if l.one(40) {
		l.add(documents(map[string]string{"a": pick(l, "1", "2"), "b": pick(l, "1", "2")}))
	}
}

func (l *life) act(service string) {
	e, _ := l.state.InFlight(service, "")
	t, open := l.state.OpenTicket(service)
	switch {
	case e != nil:
		l.goOn(*e)
	case open:
		l.answer(t)
	default:
		l.begin(service)
	}
}

// goOn takes an effect one step further.
func (l *life) goOn(e ledger.Effect) {
	key := e.Claim.Key
	switch {
	case e.Effect == execute.Claimed && l.one(6):
		l.try(ledger.VoidDraft(l.state, key, "permit-expired"))
	case e.Effect == execute.Claimed:
		d, err := ledger.StartDraft(l.state, key)
		if err != nil {
			d, err = ledger.VoidDraft(l.state, key, "frozen")
		}
		l.try(d, err)
	case e.Effect == execute.Started && !l.one(6):
		r := execute.Receipt{Effect: pick(l, execute.Applied, execute.Applied, execute.AppliedWithError, execute.NoOp, execute.Failed, execute.NotNow, execute.InDoubt), At: l.now}
		l.try(ledger.ReceiptDraft(l.state, key, r))
	case e.Effect == execute.Started, e.Effect == execute.InDoubt:
		found := pick(l, execute.Landed, execute.NotLanded, execute.Unknown, execute.NoOp)
		l.try(ledger.SettleDraft(l.state, ledger.Settled{Key: key, Effect: found, By: ledger.SettledByObservation}))
	case e.Effect == execute.Unknown && l.one(3):
		l.try(ledger.SettleDraft(l.state, ledger.Settled{Key: key, Effect: pick(l, execute.Landed, execute.NotLanded), By: "os:alice"}))
	case e.Effect.Judged():
		o := pick(l, compare.OutcomeImproved, compare.OutcomeRecovered, compare.OutcomeNoChange, compare.OutcomeWorsened, compare.OutcomeUnknown)
		cost := map[compare.Outcome]float64{compare.OutcomeNoChange: 1, compare.OutcomeWorsened: 2, compare.OutcomeUnknown: 1}[o]
		l.try(ledger.OutcomeDraft(l.state, ledger.Outcome{Key: key, Judgement: compare.Judgement{Outcome: o, Decided: true}, Cost: cost}))
	}
}

// card records what a channel holds of a ticket, or of the digest.
func (l *life) card(ticket string) {
	p := approve.Posted{Ticket: ticket}
	if known := l.state.Cards[ticket]; known != nil {
		p = *known
	}
	p.Rev++
	switch l.IntN(4) {
	case 0:
		p.Begun, p.By = l.now, "host/1"
	case 1:
		p = p.After(approve.ErrGone, "gone", l.now)
	case 2:
		p.Closed = true
	default:
		p.Begun, p.By = time.Time{}, ""
		p = p.With(approve.Message{Channel: "C1", ID: fmt.Sprint(l.IntN(3)), Gone: l.one(3)})
	}
	l.try(ledger.CardDraft(l.state, p))
}

func (l *life) answer(t approve.Ticket) {
	if l.one(2) {
		l.card(pick(l, t.ID, t.ID, t.ID, approve.DigestCard))
	}
	a := approve.Answer{Ticket: t.ID, By: pick(l, "os:alice", "os:bob"), Via: "cli", Approve: !l.one(4), At: l.now, Satisfies: []int{0}}
	switch {
	case l.one(5):
		l.try(ledger.TicketEndDraft(l.state, ledger.TicketEnd{Ticket: t.ID, State: pick(l, approve.Expired, approve.Withdrawn, approve.Void), Reason: "why"}))
	case t.State == approve.Approved && !l.one(8):
		l.claim(t.Service, t.Key, t.Decision, t.ID)
	case !l.now.Before(t.Expires):
		l.try(ledger.TicketEndDraft(l.state, ledger.TicketEnd{Ticket: t.ID, State: approve.Expired, Reason: "why"}))
	default:
		l.try(ledger.AnswerDraft(l.state, a))
	}
}

// begin asks, proposes, decides and claims, or asks people.
func (l *life) begin(service string) {
	sv, _ := l.state.Service(service)
	w := sv.Window(l.now, 10*time.Minute)
	key := gate.KeyOf(service, w)
	if sv.State != breached || l.state.KeyClaimed(service, w) {
		l.now = l.now.Add(10 * time.Minute)
		l.measure(service)
		return
	}
	l.try(ledger.AskDraft(l.state, service, ledger.Asked{
		Window: w.String(), Deadline: l.now, Proposer: propose.Proposer{Kind: "openai", Endpoint: "main", Model: "m"},
	}, propose.Limits{}, l.now))
	l.try(ledger.ProposalDraft(l.state, service, ledger.Proposed{
		Window: w.String(), Episode: sv.Episode, Proposal: propose.Proposal{Kind: propose.KindAction, Action: "scale"},
		Exchanges: []ledger.Exchange{{Endpoint: "main", Model: "m", Result: "ok", InputTokens: 900, OutputTokens: 40}},
	}))
	l.add(ledger.Draft{Kind: ledger.KindDecision, Service: service, Body: ledger.Decided{
		Window: w.String(), Episode: sv.Episode, Key: key, State: breached, Decision: gate.Decision{Verdict: gate.Auto, Digest: "digest"},
	}})
	id := ledger.DecisionID(l.state.Head.Seq)
	if l.one(4) {
		l.try(ledger.TicketDraft(l.state, service, approve.Ticket{
			Key: key, Digest: "digest", Episode: sv.Episode, Decision: id, Asked: l.now, Expires: l.now.Add(time.Hour),
			Needs: []gate.Need{{Reason: "class-approval", Approvers: []string{"os:alice", "os:bob"}, Quorum: 1}},
		}))
		return
	}
	l.claim(service, key, id, "")
}

func (l *life) claim(service string, key gate.Key, decision, ticket string) {
	c := claimOf(key, func(c *ledger.Claim) {
		c.Action.Name = pick(l, l.actions...)
		c.Target, c.Decision, c.Ticket, c.Undo = "target of "+service, decision, ticket, l.one(9)
		if ticket != "" {
			c.Verdict, c.Charge = gate.Approval, 0
		}
		if c.Undo {
			c.Charge = 0
		}
	})
	l.try(ledger.ClaimDraft(l.state, service, c, l.state.Head))
}

// people do what people do.
func (l *life) people(service string) {
	var until time.Time
	if l.one(2) {
		until = l.now.Add(pick(l, time.Hour, 100*time.Hour, 60*24*time.Hour))
	}
	switch l.IntN(4) {
	case 0:
		l.freezes++
		id := fmt.Sprint("f", l.freezes)
		l.add(ledger.Draft{Kind: ledger.KindFreeze, Service: service, Body: ledger.Freeze{ID: id, Service: service, By: "os:alice", Until: until}})
		l.try(ledger.ThawDraft(l.state, ledger.Thaw{ID: fmt.Sprint("f", l.freezes-1), By: "os:alice"}))
	case 1:
		l.add(ledger.Draft{Kind: ledger.KindCeiling, Service: service, Body: ledger.Ceiling{
			Action: pick(l, "", "scale"), To: pick(l, gate.Auto, gate.Approval, gate.Deny), By: "os:alice", Reason: "r", Until: until,
		}})
	default:
		name, action := pick(l, service, service, ""), pick(l, l.actions...)
		if name == "" {
			action = ""
		}
		l.add(ledger.Draft{Kind: ledger.KindReset, Service: name, Body: ledger.Reset{Action: action, By: "os:alice", Reason: "fixed", Until: until}})
	}
}

func (l *life) page(service string) {
	l.pages++
	id := fmt.Sprint("p", l.pages/3)
	switch l.pages % 3 {
	case 0:
		l.add(ledger.Draft{Kind: ledger.KindPage, Service: service, Body: escalate.Page{ID: id, Service: service, Reason: "blind", Since: l.now}})
	case 1:
		l.add(ledger.Draft{Kind: ledger.KindDelivery, Body: escalate.Delivery{Page: id, Receiver: "r", First: l.now, Sent: l.now}})
	default:
		l.add(ledger.Draft{Kind: ledger.KindPageEnd, Body: ledger.PageEnd{Page: id, Reason: "recovered"}})
	}
}

// clockAhead claims in a window that is still to come, and then a person sets
// the time back.
func (l *life) clockAhead(service string) {
	real := l.now
	l.now = l.now.Add(9 * time.Hour)
	for range 4 {
		l.act(service)
	}
	l.now = real.Add(time.Minute)
	windows := map[string]gate.WindowID{}
	for _, name := range l.names {
		windows[name] = gate.WindowAt(l.now, 10*time.Minute)
	}
	ds, err := ledger.LoweredDrafts(l.state, windows, "os:alice", "NTP", l.now)
	if err != nil {
		l.now = real.Add(9 * time.Hour)
		return
	}
	l.add(ds...)
}

package ledger_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestForgetting: a state that forgets answers whatever decides something as
// one that forgets nothing does, after every entry of a long chain.
func TestForgetting(t *testing.T) {
	checks(t, "2")
	forgotten := 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		l := newLife(t, seed, ledger.NewHistory(), true)
		s := ledger.NewState()
		for len(l.entries) < 2500 {
			l.step()
			for _, e := range l.entries[s.Head.Seq:] {
				if err := s.Apply(e); err != nil {
					rt.Fatal(err)
				}
			}
			// The same questions of both.
			want, got := newQuestions(l.now, s.Head.Seq).answers(l.state), newQuestions(l.now, s.Head.Seq).answers(s)
			if !reflect.DeepEqual(want, got) {
				all := cmp.Exporter(func(reflect.Type) bool { return true })
				rt.Fatalf("after entry %d the answers differ, -history +state:\n%s", s.Head.Seq, cmp.Diff(want, got, all))
			}
		}
		forgotten += len(l.state.Effects) - len(s.Effects)
	})
	if forgotten < 100 {
		t.Errorf("%d effects were forgotten: nothing was tried", forgotten)
	}
}

// questions asks a state whatever decides something.
type questions struct {
	*rand.Rand
	now time.Time
}

func newQuestions(now time.Time, seed uint64) questions {
	return questions{rand.New(rand.NewPCG(seed, 9)), now}
}

type answers map[string]any

func (q questions) answers(s *ledger.State) answers {
	a := answers{"open tickets": s.OpenTickets(), "sent": s.Sent("", q.now.Add(-time.Hour))}
	for _, service := range []string{"a", "b", "stranger"} {
		q.service(s, service, a)
		q.keys(s, service, a)
	}
	if s.Head.Seq%100 == 0 {
		q.balances(s, a)
	}
	q.needed(s, a)
	return a
}

func (q questions) service(s *ledger.State, service string, a answers) {
	say := func(what string, answer any) { a[service+": "+what] = answer }
	sv, _ := s.Service(service)
	sv.Effects, sv.Tickets = nil, nil
	say("service", sv)
	say("window", sv.Window(q.now, 10*time.Minute))
	say("sent", s.Sent(service, q.now.Add(-time.Hour)))
	say("frozen", s.Frozen(service, q.now))
	say("refused", s.Refused(service, sv.Episode))
	if t, ok := s.OpenTicket(service); ok {
		say("open ticket", t)
		say("its card", s.Cards[t.ID])
	}
	say("digest", s.Cards[approve.DigestCard])
	if d := s.Decisions[sv.Decision]; sv.Decision != "" {
		say("decision", *d)
	}
	onService, onTarget := s.InFlight(service, "target of "+service)
	say("in flight", []*ledger.Effect{onService, onTarget})
	for _, action := range []string{"", "scale", "restart", "never"} {
		say("last sent "+action, s.LastSent(service, action))
		for _, later := range []time.Duration{0, 2 * time.Hour, 90 * 24 * time.Hour} {
			say(fmt.Sprint("suspended ", action, later), s.Suspended(service, action, q.now.Add(later)))
			say(fmt.Sprint("ceiling ", action, later), s.Ceiling(service, action, q.now.Add(later)))
		}
	}
}

// keys asks for windows of any length, present, long past and to come.
func (q questions) keys(s *ledger.State, service string, a answers) {
	for _, back := range []int64{0, 1, 2, q.Int64N(100), q.Int64N(100_000), -1, -q.Int64N(100)} {
		w := gate.WindowAt(q.now, 10*time.Minute)
		w.Start -= 600 * back
		if q.IntN(4) == 0 {
			w.Length = 60
		}
		key := gate.KeyOf(service, w)
		a[fmt.Sprint("claimed ", key)] = s.KeyClaimed(service, w)
		c := claimOf(key, func(c *ledger.Claim) { c.Target, c.Undo = "target of "+service, true })
		at := s.Head
		if q.IntN(3) == 0 {
			at.Seq -= min(at.Seq, 5)
		}
		a[fmt.Sprint("allowed ", key)] = ledger.ClaimAllowed(s, service, c, at) == nil
	}
}

func (q questions) balances(s *ledger.State, a answers) {
	charges := s.Charges()
	for _, days := range []int{1, 28, 365} {
		p := budget.Policy{Period: time.Duration(days) * 24 * time.Hour, Capacity: 1000}
		for _, service := range []string{"a", "b"} {
			for _, action := range []string{"scale", "restart"} {
				for _, later := range []time.Duration{0, 60 * 24 * time.Hour} {
					b := budget.Of(service, action, p, p, charges, s.Resets, q.now.Add(later))
					a[fmt.Sprint("balance ", service, action, days, later)] = []float64{b.Remaining, b.GlobalRemaining, float64(len(b.Charges))}
				}
			}
		}
	}
}

// needed is what explain and settle name of what is under way.
func (q questions) needed(s *ledger.State, a answers) {
	for _, key := range s.Unsettled {
		c := s.Effects[key].Claim
		if c.Decision != "" {
			a["decision of "+string(key)] = *s.Decisions[c.Decision]
		}
		if c.Ticket != "" {
			a["ticket of "+string(key)] = *s.Tickets[c.Ticket]
			a["card of "+c.Ticket] = s.Cards[c.Ticket]
		}
	}
	for id, p := range s.Pages {
		if p.EndedAt.IsZero() {
			a["page "+id], a["deliveries "+id] = *p, s.Deliveries[id]
		}
	}
}

// TestForgettingKeepsWhatIsUnderWay: an effect that stays unknown for years keeps its
// decision and its ticket, whatever else is done.
func TestForgettingKeepsWhatIsUnderWay(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(0, decided(c, windowAt(0), gate.Decision{Verdict: gate.Approval})))
	asked := ticket(c, keyAt(c, 0))
	ch.add(at(1, asked), at(2, answer("t3", "os:alice", true, 2)),
		at(3, claim(c, claimOf(keyAt(c, 0), func(c *ledger.Claim) { c.Decision, c.Ticket = "d2", "t3" }))),
		at(3, started(c, keyAt(c, 0))), at(9, settled(c, keyAt(c, 0), "unknown", ledger.SettledByObservation)))
	for i := range 6000 {
		m := 10 + 10*i
		ch.add(at(m, decided(c, windowAt(m), gate.Decision{Verdict: gate.Deny, Hold: true})))
		if i < 200 {
			d := ticket(c, keyAt(c, m))
			ch.add(at(m, d), at(m, ticketEnd(ledger.TicketID(ch.state.Head.Seq+1), "withdrawn")))
			k := keyAt("search", m)
			ch.add(at(m, claim("search", claimOf(k))), at(m, void("search", k)))
		}
	}
	ch.noSkips()
	s := ch.state
	if len(s.Decisions) > 4100 || len(s.Tickets) > 80 || len(s.Effects) > 80 || s.Forgotten == 0 {
		t.Errorf("%d decisions, %d tickets, %d effects are kept, %d decisions forgotten", len(s.Decisions), len(s.Tickets), len(s.Effects), s.Forgotten)
	}
	if s.Decisions["d2"] == nil || s.Tickets["t3"] == nil || s.Effects[keyAt(c, 0)] == nil {
		t.Fatal("what is under way was forgotten")
	}
	ch.add(at(99999, settled(c, keyAt(c, 0), "not-landed", "os:alice")))
	ch.noSkips()
	if got := s.Decisions["d2"].Effect; got != "not-landed" {
		t.Errorf("the decision says %s", got)
	}
	if n := len(s.DecisionOrder); n != len(s.Decisions) {
		t.Errorf("%d ids and %d decisions", n, len(s.Decisions))
	}
}

// TestForgottenCharges: what is charged leaves by ageing out alone, over years
// in which most charges are of effects that were forgotten.
func TestForgottenCharges(t *testing.T) {
	ch, h := newChain(t), ledger.NewHistory()
	policies := []budget.Policy{}
	for _, days := range []int{1, 90, 365} {
		policies = append(policies, budget.Policy{Period: time.Duration(days) * 24 * time.Hour, Capacity: 10_000})
	}
	for i := range 1400 {
		m := 16 * 60 * i
		ch.add(worsened(m - m%10)...)
		if i%300 == 299 {
			ch.add(at(m+9, resetUntil("checkout", "scale", m+100*24*60)))
		}
		for _, e := range ch.entries[h.Head.Seq:] {
			if err := h.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 != 0 {
			continue
		}
		for _, p := range policies {
			want := budget.Of("checkout", "scale", p, p, h.Charges(), h.Resets, ch.state.Time)
			got := budget.Of("checkout", "scale", p, p, ch.state.Charges(), ch.state.Resets, ch.state.Time)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("after %d effects, %s, -history +state:\n%s", i, p.Period, diff)
			}
		}
	}
	if kept := len(ch.state.Charges()); kept > 900 {
		t.Errorf("%d charges are kept of 1400", kept)
	}
}

// TestChargesChangeNothing: several passes ask one state at once.
func TestChargesChangeNothing(t *testing.T) {
	ch := newChain(t)
	live := func(service string, m int, v gate.Verdict) {
		k := keyAt(service, m)
		c := claimOf(k, func(c *ledger.Claim) { c.Verdict, c.Target = v, service })
		ch.add(at(m, claim(service, c)), at(m, started(service, k)), at(m, receipt(service, k, "applied", m)), at(m, outcome(service, k, "worsened", 2)))
	}
	for i := range 40 {
		live("a", 10*i, gate.Auto)
	}
	for i := range 40 {
		live("b", 1000+10*i, gate.Auto)
	}
	// Those of b are forgotten first, although they are newer.
	for i := range 100 {
		live("b", 2000+10*i, gate.Approval)
	}
	for i := range 100 {
		live("a", 4000+10*i, gate.Approval)
	}
	before := slices.Clone(ch.state.Charged)
	if len(before) != 80 || !before[0].At.After(before[79].At) || len(ch.state.Charges()) != 80 {
		t.Fatalf("%d charges, in order: nothing is tried", len(before))
	}
	if !slices.Equal(before, ch.state.Charged) {
		t.Error("asking for the charges changed the state")
	}
}

// sizeBound is what the state of a life of two small services takes as JSON,
// however long it was: mostly its newest few thousand decisions.
const sizeBound = 4 << 20

// TestSizeDoesNotGrow: the second half of a long life adds nothing to the size.
// What people thawed alone is kept for ever.
func TestSizeDoesNotGrow(t *testing.T) {
	l := newLife(t, 1, ledger.NewState(), false)
	largest := [2]int{}
	for next := uint64(10_000); next <= 50_000; next += 2_500 {
		for l.state.Head.Seq < next {
			l.step()
		}
		s := l.state.Clone()
		s.Thawed = nil
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		half := 0
		if next > 30_000 {
			half = 1
		}
		largest[half] = max(largest[half], len(raw))
	}
	t.Logf("at most %d bytes up to entry 30,000, and %d from there to 50,000", largest[0], largest[1])
	if growth := float64(largest[1]) / float64(largest[0]); growth > 1.1 || largest[1] > sizeBound {
		t.Errorf("%d bytes, %.2f of the first half's; bound %d", largest[1], growth, sizeBound)
	}
	if n := len(l.state.Skipped); n > 200 {
		t.Errorf("%d entries were skipped", n)
	}
}

package ledger_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// drawDraft draws an entry of a small world. Half of them name what is open,
// so that lives are lived to their ends; the others mostly contradict.
func drawDraft(rt *rapid.T, s *ledger.State) ledger.Draft {
	service := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "service")
	m := 10 * rapid.IntRange(0, 9).Draw(rt, "window")
	k, id, episode := keyAt(service, m), "t9", "e9"
	if rapid.Bool().Draw(rt, "open") {
		k, id, episode = openOf(s, service, k)
	}
	w := string(k[len(service)+1:])
	return rapid.SampledFrom(draftsOf(rt, s, service, m, k, w, id, episode)).Draw(rt, "draft")
}

// openOf names what is open of a service, where there is something.
func openOf(s *ledger.State, service string, k gate.Key) (key gate.Key, ticket, episode string) {
	sv, _ := s.Service(service)
	ticket, episode = "t9", sv.Episode
	if t, ok := s.OpenTicket(service); ok {
		k, ticket = t.Key, t.ID
	}
	if e, _ := s.InFlight(service, ""); e != nil {
		k = e.Claim.Key
	}
	if episode == "" {
		episode = "e9"
	}
	return k, ticket, episode
}

func draftsOf(rt *rapid.T, s *ledger.State, service string, m int, k gate.Key, w, id, episode string) []ledger.Draft {
	states := rapid.SampledFrom([]compare.State{met, breached, unknown})
	by := rapid.SampledFrom([]string{"os:alice", "os:bob", ledger.SettledByObservation}).Draw(rt, "by")
	digest := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "digest")
	yes := rapid.Bool().Draw(rt, "yes")
	return []ledger.Draft{
		documents(map[string]string{service: digest}), gap(), recovered(service, episode), asked(service, w),
		state(service, states.Draw(rt, "from"), states.Draw(rt, "to")),
		state(service, states.Draw(rt, "from"), states.Draw(rt, "to")),
		proposed(service, w, propose.Proposal{Kind: propose.KindNone, Undo: yes}),
		decided(service, w, gate.Decision{Verdict: gate.Verdict(m / 10 % 4), Hold: yes}),
		ticket(service, k), answer(id, by, yes, m), ticketEnd(id, rapid.SampledFrom([]approve.State{"expired", "void", "withdrawn"}).Draw(rt, "end")),
		claim(service, claimOf(k, func(c *ledger.Claim) {
			c.Undo, c.Ticket, c.Decision = yes, id, ledger.DecisionID(uint64(m))
			c.Verdict = rapid.SampledFrom([]gate.Verdict{gate.Auto, gate.Approval}).Draw(rt, "verdict")
		})),
		started(service, k), void(service, k),
		receipt(service, k, rapid.SampledFrom([]execute.Effect{"applied", "in-doubt", "failed"}).Draw(rt, "effect"), m),
		settled(service, k, rapid.SampledFrom([]execute.Effect{"landed", "not-landed", "unknown"}).Draw(rt, "found"), by),
		outcome(service, k, rapid.SampledFrom([]compare.Outcome{"improved", "worsened"}).Draw(rt, "outcome"), 1),
		{Kind: ledger.KindFreeze, Body: ledger.Freeze{ID: digest, By: "os:alice"}},
		{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: digest, By: "os:alice"}},
		{Kind: ledger.KindPage, Body: escalate.Page{ID: digest}},
		{Kind: ledger.KindPageEnd, Body: ledger.PageEnd{Page: digest, Reason: "recovered"}},
		{Kind: ledger.KindDelivery, Body: escalate.Delivery{Page: digest, Receiver: by, Ended: yes}},
		{Kind: ledger.KindAck, Body: ledger.Ack{Page: digest, By: by}},
		card(rapid.SampledFrom([]string{id, id, approve.DigestCard}).Draw(rt, "of card"), nextRev(s, id, yes), func(p *approve.Posted) {
			p.Messages, p.Closed = []approve.Message{{Channel: "C1", ID: digest, Gone: yes}}, !yes
		}),
		reset(service, "scale"), resetUntil(service, "scale", 10*m), lowered(service, w), lowered("", ""), adopted(),
		ceiling(service, rapid.SampledFrom([]string{"", "scale"}).Draw(rt, "of"), gate.Verdict(m/10%4), m),
		{Kind: ledger.KindCheckpoint, Body: ledger.Checkpoint{At: ledger.Position{Seq: uint64(m + 1), Hash: "h"}, State: digest}},
	}
}

// drawChain draws a chain of entries, one a minute.
func drawChain(rt *rapid.T) []ledger.Entry {
	first, err := ledger.Link(ledger.Position{}, start, ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: 1}})
	if err != nil {
		rt.Fatal(err)
	}
	return drawOn(rt, []ledger.Entry{first})
}

// drawOn draws a chain that goes on from the entries.
func drawOn(rt *rapid.T, es []ledger.Entry) []ledger.Entry {
	es, s := slices.Clone(es), folded(rt, es)
	for range rapid.IntRange(0, 80).Draw(rt, "length") {
		e, err := ledger.Link(s.Head, minute(int(s.Head.Seq)), drawDraft(rt, s))
		if err != nil {
			rt.Fatal(err)
		}
		if err := s.Apply(e); err != nil {
			rt.Fatal(err)
		}
		es = append(es, e)
	}
	return es
}

func folded(rt *rapid.T, es []ledger.Entry) *ledger.State {
	s, err := ledger.Fold(es)
	if err != nil {
		rt.Fatal(err)
	}
	return s
}

// TestFoldProperties: the fold of a whole is the fold of its parts in turn;
// an entry that does not follow changes nothing.
func TestFoldProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		es := drawChain(rt)
		cut := rapid.IntRange(0, len(es)).Draw(rt, "cut")
		live := folded(rt, es[:cut])
		for _, e := range es[cut:] {
			if err := live.Apply(e); err != nil {
				rt.Fatal(err)
			}
		}
		if !reflect.DeepEqual(live, folded(rt, es)) {
			rt.Fatal("a replay differs from what was folded live")
		}
		again := rapid.SampledFrom(es).Draw(rt, "again")
		if err := live.Apply(again); !errors.Is(err, ledger.ErrCorrupt) {
			rt.Fatalf("entry %d was taken twice: %v", again.Seq, err)
		}
		if !reflect.DeepEqual(live, folded(rt, es)) {
			rt.Fatal("a duplicated entry changed the state")
		}
	})
}

// TestCloneProperties: a state and its clones go on apart, whatever each of
// them folds.
func TestCloneProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		es := drawChain(rt)
		live := folded(rt, es)
		kept, other := live.Clone(), live.Clone()
		onward, elsewhere := drawOn(rt, es), drawOn(rt, es)
		for i := range max(len(onward), len(elsewhere)) - len(es) {
			for s, chain := range map[*ledger.State][]ledger.Entry{live: onward, other: elsewhere} {
				if at := len(es) + i; at < len(chain) {
					if err := s.Apply(chain[at]); err != nil {
						rt.Fatal(err)
					}
				}
			}
		}
		for name, pair := range map[string][2]*ledger.State{
			"the clone that was kept": {kept, folded(rt, es)},
			"the state":               {live, folded(rt, onward)},
			"the clone that went on":  {other, folded(rt, elsewhere)},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				rt.Fatalf("%s was changed by another", name)
			}
		}
	})
}

// TestClonesSpareRoom: lists that have spare room in memory are not shared by
// what goes on apart.
func TestClonesSpareRoom(t *testing.T) {
	const c = "checkout"
	for n := range 10 {
		ch := newChain(t)
		for i := range n {
			ch.add(at(i, claim(c, claimOf(keyAt(c, 10*i)))), at(i, started(c, keyAt(c, 10*i))))
		}
		left, right := *ch, *ch
		left.state, right.state = ch.state.Clone(), ch.state
		for i, side := range []*chain{&left, &right} {
			k := keyAt(c, 1000+10*i)
			side.add(at(99, claim(c, claimOf(k))), at(99, started(c, k)))
		}
		for i, s := range []*ledger.State{left.state, right.state} {
			want := keyAt(c, 1000+10*i)
			sv, _ := s.Service(c)
			got := []gate.Key{s.EffectOrder[n], s.Unsettled[n], sv.Effects[n], s.Starts[n].Key}
			if !slices.Equal(got, []gate.Key{want, want, want, want}) {
				t.Errorf("after %d claims: %v, want all %s", n, got, want)
			}
		}
	}
}

// TestFoldInvariants holds after every entry of any chain.
func TestFoldInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := ledger.NewState()
		marks := map[string]gate.WindowID{}
		for _, e := range drawChain(rt) {
			if err := s.Apply(e); err != nil {
				rt.Fatal(err)
			}
			effectInvariants(rt, s)
			cardInvariants(rt, s)
			for name, sv := range s.Services {
				if sv.Mark.Start < marks[name].Start && e.Kind != ledger.KindLowered {
					rt.Fatalf("the mark of %s went back from %s to %s", name, marks[name], sv.Mark)
				}
				marks[name] = sv.Mark
				serviceInvariants(rt, s, sv)
			}
		}
	})
}

func effectInvariants(rt *rapid.T, s *ledger.State) {
	var locked []gate.Key
	sent := 0
	for _, key := range s.EffectOrder {
		e := s.Effects[key]
		if e.Locked() {
			locked = append(locked, key)
		}
		if !e.StartedAt.IsZero() {
			sent++
		}
		if e.Effect == execute.Void && !e.StartedAt.IsZero() {
			rt.Fatalf("%s is void and was sent", key)
		}
	}
	if !slices.Equal(locked, s.Unsettled) {
		rt.Fatalf("unsettled %v, want the locked %v", s.Unsettled, locked)
	}
	if len(s.EffectOrder) != len(s.Effects) || s.Sent("", time.Time{}) != sent {
		rt.Fatalf("%d keys in order and %d effects, %d sent and %d counted", len(s.EffectOrder), len(s.Effects), sent, s.Sent("", time.Time{}))
	}
	chargeInvariants(rt, s)
}

func chargeInvariants(rt *rapid.T, s *ledger.State) {
	total := 0.0
	for _, e := range s.Effects {
		total += e.Charge()
	}
	for _, c := range s.Charges() {
		if c.Cost < 0 {
			rt.Fatalf("a charge of %v", c.Cost)
		}
		total -= c.Cost
	}
	if total != 0 {
		rt.Fatalf("charges differ from the effects' by %v", total)
	}
}

func serviceInvariants(rt *rapid.T, s *ledger.State, sv *ledger.Service) {
	if sv.State != "" && sv.State != met && sv.Episode == "" {
		rt.Fatalf("%s is %s outside an episode", sv.Name, sv.State)
	}
	if sv.HeldSince.IsZero() == (sv.State == met) {
		rt.Fatalf("%s is %s and held since %s", sv.Name, sv.State, sv.HeldSince)
	}
	if sv.Episode != "" && !sv.QuietSince.IsZero() {
		rt.Fatalf("%s is in episode %s and quiet", sv.Name, sv.Episode)
	}
	if len(sv.Windows) > 8 {
		rt.Fatalf("%d windows are kept", len(sv.Windows))
	}
	ticketInvariants(rt, s, sv)
}

// cardInvariants: what a channel holds is kept as long as its ticket is.
func cardInvariants(rt *rapid.T, s *ledger.State) {
	for id, p := range s.Cards {
		if id != p.Ticket || p.Rev < 1 || id != approve.DigestCard && s.Tickets[id] == nil {
			rt.Fatalf("under %s a card of %s at revision %d", id, p.Ticket, p.Rev)
		}
	}
}

func ticketInvariants(rt *rapid.T, s *ledger.State, sv *ledger.Service) {
	open := 0
	for _, id := range sv.Tickets {
		t := s.Tickets[id]
		e := s.Effects[t.Key]
		if t.State == approve.Open || t.State == approve.Approved && (e == nil || e.Claim.Ticket != id) {
			open++
		}
	}
	if _, ok := s.OpenTicket(sv.Name); open > 1 || ok != (open == 1) {
		rt.Fatalf("%d open tickets, found one: %v", open, ok)
	}
}

// TestBalanceSurvivesRestarts: promise 4, restarting refills nothing.
func TestBalanceSurvivesRestarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		es := drawChain(rt)
		want := folded(rt, es).Charges()
		s := ledger.NewState()
		for len(es) > int(s.Head.Seq) {
			upTo := rapid.IntRange(int(s.Head.Seq)+1, len(es)).Draw(rt, "restart")
			s = folded(rt, es[:upTo])
		}
		if !reflect.DeepEqual(want, s.Charges()) {
			rt.Fatal("the charges differ after restarts")
		}
	})
}

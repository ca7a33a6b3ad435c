package ledger_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestClaimAllowed(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	other := func(service string, m int, change ...func(*ledger.Claim)) []step {
		return []step{at(m, claim(service, claimOf(keyAt(service, m), change...)))}
	}
	done := func(service string, m int) []step {
		key := keyAt(service, m)
		return append(other(service, m), at(m, void(service, key)))
	}
	elsewhere := func(c *ledger.Claim) { c.Target = "webhook http://elsewhere.internal/" }
	byTicket := func(c *ledger.Claim) { c.Ticket, c.Verdict = "t2", gate.Approval }
	freeze := ledger.Draft{Kind: ledger.KindFreeze, Body: ledger.Freeze{ID: "f", By: "os:alice"}}
	yes, no := at(1, answer("t2", "os:alice", true, 1)), at(1, answer("t2", "os:alice", false, 1))
	// decided is the position of the decision: before or after all steps.
	const before, after = false, true
	tests := map[string]struct {
		reason  string
		steps   []step
		decided bool
		claim   ledger.Claim
		want    error
	}{
		"free":                 {"nothing in the way", nil, after, claimOf(k), nil},
		"key claimed":          {"a claimed key is never free, even void", done(c, 0), after, claimOf(k), ledger.ErrExists},
		"other length":         {"nor is the same start of another length", done(c, 0), after, claimOf(gate.Key(c + ":" + gate.WindowID{Start: start.Unix(), Length: 60}.String())), ledger.ErrExists},
		"earlier key":          {"an earlier key is no hindrance", done(c, 0), after, claimOf(keyAt(c, 10)), nil},
		"later key":            {"a later one is", done(c, 10), after, claimOf(k), ledger.ErrLost},
		"service in flight":    {"one effect on a service", other(c, 0, elsewhere), after, claimOf(keyAt(c, 10)), ledger.ErrLost},
		"target in flight":     {"one effect on a target", other("search", 0), after, claimOf(k), ledger.ErrLost},
		"other target":         {"another service on another target", other("search", 0, elsewhere), after, claimOf(k), nil},
		"moved by a claim":     {"any claim since the decision", done("search", 0), before, claimOf(k), ledger.ErrLost},
		"moved by a freeze":    {"or a freeze", []step{at(0, freeze)}, before, claimOf(k), ledger.ErrLost},
		"frozen before":        {"a freeze that the decision knew is the gate's", []step{at(0, freeze)}, after, claimOf(k), nil},
		"moved by nothing":     {"other entries do not count", []step{at(0, gap()), at(0, state("search", "", met))}, before, claimOf(k), nil},
		"ticket approved":      {"an approved ticket's claim", []step{at(0, ticket(c, k)), yes}, after, claimOf(k, byTicket), nil},
		"ticket open":          {"nobody answered", []step{at(0, ticket(c, k))}, after, claimOf(k, byTicket), ledger.ErrLost},
		"ticket denied":        {"somebody said no", []step{at(0, ticket(c, k)), no}, after, claimOf(k, byTicket), ledger.ErrLost},
		"ticket missing":       {"there is no such ticket", nil, after, claimOf(k, byTicket), ledger.ErrLost},
		"ticket, other digest": {"other bytes were approved", []step{at(0, ticket(c, k)), yes}, after, claimOf(k, byTicket, func(c *ledger.Claim) { c.Digest = "x" }), ledger.ErrLost},
		"ticket, other key":    {"another key was approved", []step{at(0, ticket(c, k)), yes}, after, claimOf(keyAt(c, 10), byTicket), ledger.ErrLost},
		"reserved":             {"an open ticket reserves its key", []step{at(0, ticket(c, k))}, after, claimOf(k), ledger.ErrLost},
		"met meanwhile":        {"another replica has since recorded Met", []step{at(0, state(c, "", met))}, after, claimOf(k), ledger.ErrLost},
		"unknown meanwhile":    {"or that it does not know", []step{at(0, state(c, "", unknown))}, after, claimOf(k), ledger.ErrLost},
		"met, undo":            {"harm is undone all the same", []step{at(0, state(c, "", met))}, after, claimOf(k, func(c *ledger.Claim) { c.Undo = true }), nil},
		"breached still":       {"what it was decided on", []step{at(0, state(c, "", breached))}, after, claimOf(k), nil},
		"not reserved":         {"and no other", []step{at(0, ticket(c, k))}, after, claimOf(keyAt(c, 10)), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t)
			decided := ch.state.Head
			ch.add(tt.steps...)
			ch.noSkips()
			if tt.decided == after {
				decided = ch.state.Head
			}
			err := ledger.ClaimAllowed(ch.state, c, tt.claim, decided)
			if (err != nil) != (tt.want != nil) || !errors.Is(err, tt.want) {
				t.Fatalf("%s: got %v, want %v", tt.reason, err, tt.want)
			}
			if err == nil {
				ch.add(at(20, draft(t, func() (ledger.Draft, error) { return ledger.ClaimDraft(ch.state, c, tt.claim, decided) })))
				ch.noSkips()
			}
		})
	}
}

// TestClaimsMoved: what loses a claim that was decided before it.
func TestClaimsMoved(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	ch := newChain(t)
	for _, tt := range []struct {
		draft ledger.Draft
		moves bool
	}{
		{claim(c, claimOf(k)), true},
		{started(c, k), false},
		{receipt(c, k, execute.Applied, 1), false},
		{outcome(c, k, "improved", 0), true},
		{ledger.Draft{Kind: ledger.KindFreeze, Body: ledger.Freeze{ID: "f", By: "os:alice"}}, true},
		{ledger.Draft{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: "f", By: "os:alice"}}, true},
		{gap(), false},
		{state(c, "", breached), false},
		{reset(c, "scale"), false},
	} {
		decided := ch.state.Head
		ch.add(at(1, tt.draft))
		err := ledger.ClaimAllowed(ch.state, "search", claimOf(keyAt("search", 0), func(c *ledger.Claim) { c.Target = "free" }), decided)
		if errors.Is(err, ledger.ErrLost) != tt.moves {
			t.Errorf("after an entry of kind %s: got %v, want lost %v", tt.draft.Kind, err, tt.moves)
		}
	}
	ch.noSkips()
}

// TestStartAfterFreeze: what was frozen after its claim is not started, whatever
// became of the freeze.
func TestStartAfterFreeze(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, 0)
	freeze := func(service string) step {
		return at(2, ledger.Draft{Kind: ledger.KindFreeze, Service: service, Body: ledger.Freeze{ID: "f", Service: service, By: "os:alice"}})
	}
	thaw := at(3, ledger.Draft{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: "f", By: "os:alice"}})
	claimed := at(1, claim(c, claimOf(k)))
	tests := map[string]struct {
		reason string
		steps  []step
		want   error
	}{
		"nothing":     {"it starts", []step{claimed}, nil},
		"everything":  {"a freeze of everything", []step{claimed, freeze("")}, ledger.ErrLost},
		"the service": {"or of this one", []step{claimed, freeze(c)}, ledger.ErrLost},
		"another":     {"but not of another", []step{claimed, freeze("search")}, nil},
		"thawed":      {"even when it is over", []step{claimed, freeze(""), thaw}, ledger.ErrLost},
		"before":      {"one from before the claim was looked at then", []step{freeze(""), thaw, at(4, claim(c, claimOf(k)))}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, tt.steps...)
			if _, err := ledger.StartDraft(ch.state, k); !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
				t.Errorf("%s: got %v, want %v", tt.reason, err, tt.want)
			}
		})
	}
}

// TestClaimedCounts: what is claimed and not yet started may be sent at any
// moment, so caps count it.
func TestClaimedCounts(t *testing.T) {
	elsewhere := func(c *ledger.Claim) { c.Target = "webhook http://elsewhere.internal/" }
	a, b := keyAt("checkout", 0), keyAt("search", 0)
	ch := newChain(t, at(1, claim("checkout", claimOf(a))), at(2, claim("search", claimOf(b, elsewhere))))
	count := func() []int {
		s := ch.state
		return []int{s.Claimed("", ""), s.Claimed("", a), s.Claimed("search", ""), s.Claimed("search", b)}
	}
	if diff := cmp.Diff([]int{2, 1, 1, 0}, count()); diff != "" {
		t.Errorf("two are claimed (-want +got):\n%s", diff)
	}
	ch.add(at(3, started("checkout", a)), at(4, void("search", b)))
	if diff := cmp.Diff([]int{0, 0, 0, 0}, count()); diff != "" {
		t.Errorf("one is started and one void (-want +got):\n%s", diff)
	}
}

// TestHeldIsNoFailure: what was held at the last moment suspends no action.
func TestHeldIsNoFailure(t *testing.T) {
	const c = "checkout"
	ch := newChain(t)
	for i := range 4 {
		k := keyAt(c, 10*i)
		r := receipt(c, k, execute.Failed, 10*i)
		b, ok := r.Body.(ledger.Receipt)
		if !ok {
			t.Fatalf("a receipt's body is %T", r.Body)
		}
		b.Receipt.Held = true
		r.Body = b
		ch.add(at(10*i, claim(c, claimOf(k))), at(10*i, started(c, k)), at(10*i, r))
	}
	ch.noSkips()
	if why := ch.state.Suspended(c, "scale", minute(99)); why != "" {
		t.Errorf("suspended: %s", why)
	}
}

// TestConflict: a key that is held with other bytes is no ordinary race.
func TestConflict(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(1, claim(c, claimOf(keyAt(c, 0)))))
	other := claimOf(keyAt(c, 0), func(c *ledger.Claim) { c.Digest = "other" })
	err := ledger.ClaimAllowed(ch.state, c, other, ch.state.Head)
	if !errors.Is(err, ledger.ErrConflict) || !errors.Is(err, ledger.ErrExists) {
		t.Errorf("other bytes under a claimed key gave %v", err)
	}
	if err := ledger.ClaimAllowed(ch.state, c, claimOf(keyAt(c, 0)), ch.state.Head); errors.Is(err, ledger.ErrConflict) {
		t.Errorf("the same bytes gave %v", err)
	}
}

func draft(t *testing.T, f func() (ledger.Draft, error)) ledger.Draft {
	t.Helper()
	d, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestKeyClaimed(t *testing.T) {
	c := newChain(t, at(0, claim("checkout", claimOf(keyAt("checkout", 0)))))
	for _, tt := range []struct {
		service string
		window  gate.WindowID
		want    bool
	}{
		{"checkout", gate.WindowID{Start: start.Unix(), Length: 600}, true},
		{"checkout", gate.WindowID{Start: start.Unix(), Length: 60}, true},
		{"checkout", gate.WindowID{Start: start.Unix() + 600, Length: 600}, false},
		{"search", gate.WindowID{Start: start.Unix(), Length: 600}, false},
	} {
		if got := c.state.KeyClaimed(tt.service, tt.window); got != tt.want {
			t.Errorf("%s:%s claimed %v, want %v", tt.service, tt.window, got, tt.want)
		}
	}
}

// TestTransitions takes every transition on a state where it is due and asks
// for it again afterwards, when it must be lost.
func TestTransitions(t *testing.T) {
	const c = "checkout"
	k, w := keyAt(c, 0), windowAt(0)
	claimed := []step{at(0, claim(c, claimOf(k)))}
	sent := append(claimed[:1:1], at(1, started(c, k)))
	act := propose.Proposal{Kind: propose.KindAction, Action: "scale"}
	type take = func(*ledger.State) (ledger.Draft, error)
	tests := map[string]struct {
		steps []step
		take  take
		again error
	}{
		"state": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.StateDraft(s, c, ledger.StateChange{To: breached, Reason: "burning", ErrorRatio: math.NaN()})
		}, ledger.ErrExists},
		"recovered": {[]step{at(0, state(c, "", breached)), at(1, state(c, breached, met))}, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.RecoveredDraft(s, c)
		}, ledger.ErrLost},
		"asked": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.AskDraft(s, c, ledger.Asked{Window: w}, propose.Limits{}, minute(0))
		}, ledger.ErrExists},
		"proposal": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ProposalDraft(s, c, ledger.Proposed{Window: w, Proposal: act}, []byte("request"))
		}, ledger.ErrExists},
		"ticket": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.TicketDraft(s, c, ticket(c, k).Body.(approve.Ticket))
		}, ledger.ErrLost},
		"answer": {[]step{at(0, ticket(c, k))}, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.AnswerDraft(s, answer("t2", "os:alice", true, 1).Body.(approve.Answer))
		}, ledger.ErrLost},
		"ticket-end": {[]step{at(0, ticket(c, k))}, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.TicketEndDraft(s, ledger.TicketEnd{Ticket: "t2", State: approve.Withdrawn})
		}, ledger.ErrLost},
		"claim": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ClaimDraft(s, c, claimOf(k), s.Head)
		}, ledger.ErrExists},
		"start": {claimed, func(s *ledger.State) (ledger.Draft, error) { return ledger.StartDraft(s, k) }, ledger.ErrLost},
		"void":  {claimed, func(s *ledger.State) (ledger.Draft, error) { return ledger.VoidDraft(s, k, "expired") }, ledger.ErrLost},
		"receipt": {sent, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ReceiptDraft(s, k, execute.Receipt{Effect: execute.Applied, At: minute(2)})
		}, ledger.ErrLost},
		"settle": {sent, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.SettleDraft(s, ledger.Settled{Key: k, Effect: execute.Landed, By: ledger.SettledByObservation})
		}, ledger.ErrLost},
		"found": {append(sent[:2:2], at(2, settled(c, k, execute.Unknown, ledger.SettledByObservation))), func(s *ledger.State) (ledger.Draft, error) {
			return ledger.SettleDraft(s, ledger.Settled{Key: k, Effect: execute.Landed, By: "os:alice"})
		}, ledger.ErrLost},
		"outcome": {append(sent[:2:2], at(2, receipt(c, k, execute.Applied, 2))), func(s *ledger.State) (ledger.Draft, error) {
			return ledger.OutcomeDraft(s, ledger.Outcome{Key: k, Judgement: compare.Judgement{Outcome: "unknown", Before: math.Inf(1), After: math.NaN()}, Cost: 1})
		}, ledger.ErrLost},
		"freeze": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.FreezeDraft(s, ledger.Freeze{ID: "f", By: "os:alice"})
		}, ledger.ErrExists},
		"thaw": {nil, func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ThawDraft(s, ledger.Thaw{ID: "f", By: "os:alice"})
		}, ledger.ErrExists},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, tt.steps...)
			ch.add(at(5, draft(t, func() (ledger.Draft, error) { return tt.take(ch.state) })))
			ch.noSkips()
			if _, err := tt.take(ch.state); !errors.Is(err, tt.again) {
				t.Errorf("a second time gave %v, want %v", err, tt.again)
			}
		})
	}
}

// TestEarlyTransitions asks for transitions that are not due.
func TestEarlyTransitions(t *testing.T) {
	s := newChain(t, at(10, claim("checkout", claimOf(keyAt("checkout", 10))))).state
	k := keyAt("checkout", 10)
	tests := map[string]func() (ledger.Draft, error){
		"start of nothing":  func() (ledger.Draft, error) { return ledger.StartDraft(s, "checkout:1-1") },
		"receipt, no start": func() (ledger.Draft, error) { return ledger.ReceiptDraft(s, k, execute.Receipt{}) },
		"settle, no start":  func() (ledger.Draft, error) { return ledger.SettleDraft(s, ledger.Settled{Key: k}) },
		"outcome, no start": func() (ledger.Draft, error) { return ledger.OutcomeDraft(s, ledger.Outcome{Key: k}) },
		"answer, no ticket": func() (ledger.Draft, error) { return ledger.AnswerDraft(s, approve.Answer{Ticket: "t9"}) },
		"end, no ticket":    func() (ledger.Draft, error) { return ledger.TicketEndDraft(s, ledger.TicketEnd{Ticket: "t9"}) },
		"recovered, unseen": func() (ledger.Draft, error) { return ledger.RecoveredDraft(s, "checkout") },
		"ask in an old window": func() (ledger.Draft, error) {
			return ledger.AskDraft(s, "checkout", ledger.Asked{Window: windowAt(0)}, propose.Limits{}, minute(0))
		},
		"ticket on an old key": func() (ledger.Draft, error) {
			return ledger.TicketDraft(s, "checkout", approve.Ticket{Key: keyAt("checkout", 0)})
		},
	}
	for name, take := range tests {
		if _, err := take(); !errors.Is(err, ledger.ErrLost) {
			t.Errorf("%s: got %v, want %v", name, err, ledger.ErrLost)
		}
	}
}

// TestStateDraftOfTheSame: a pass that changes nothing writes nothing, but for
// the first Met under changed documents.
func TestStateDraftOfTheSame(t *testing.T) {
	const c = "checkout"
	one, two := documents(map[string]string{c: "1"}), documents(map[string]string{c: "2"})
	tests := map[string]struct {
		reason string
		steps  []step
		change ledger.StateChange
		writes bool
	}{
		"same":           {"nothing new", []step{at(0, one), at(1, state(c, "", met))}, ledger.StateChange{To: met}, false},
		"other ratio":    {"a number alone is nothing new", []step{at(0, one), at(1, state(c, "", met))}, ledger.StateChange{To: met, ErrorRatio: 0.1}, false},
		"reason":         {"another reason is", []step{at(1, state(c, "", unknown))}, ledger.StateChange{To: unknown, Reason: "stale"}, true},
		"source":         {"another source's fault is", []step{at(1, state(c, "", unknown))}, ledger.StateChange{To: unknown, SourceFault: "main"}, true},
		"met again":      {"Met under other documents is", []step{at(0, one), at(1, state(c, "", met)), at(2, two)}, ledger.StateChange{To: met}, true},
		"breached again": {"Breached under other documents is not", []step{at(0, one), at(1, state(c, "", breached)), at(2, two)}, ledger.StateChange{To: breached}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, tt.steps...)
			d, err := ledger.StateDraft(ch.state, c, tt.change)
			if tt.writes != (err == nil) || err != nil && !errors.Is(err, ledger.ErrExists) {
				t.Fatalf("%s: got %v, want an entry %v", tt.reason, err, tt.writes)
			}
			if err == nil {
				ch.add(at(9, d))
				ch.noSkips()
			}
		})
	}
}

func TestPlanFrom(t *testing.T) {
	c := newChain(t)
	base, n := c.state.Clone(), len(c.entries)
	c.add(at(1, state("checkout", "", breached)))
	var saw compare.State
	plan := ledger.PlanFrom(base, func(s *ledger.State) ([]ledger.Draft, error) {
		sv, _ := s.Service("checkout")
		saw = sv.State
		return []ledger.Draft{gap()}, nil
	})
	for range 2 {
		ds, err := plan(c.entries[n:])
		if err != nil || len(ds) != 1 || saw != breached {
			t.Fatalf("planned %d drafts on state %q, %v", len(ds), saw, err)
		}
	}
	if _, ok := base.Service("checkout"); ok || base.Head.Seq != 1 {
		t.Error("planning changed the state that it began with")
	}
	if _, err := plan(c.entries); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("entries that do not follow gave %v", err)
	}
}

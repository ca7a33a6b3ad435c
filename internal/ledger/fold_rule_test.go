package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// ceiling is until a minute, or for good with 0.
func ceiling(service, action string, to gate.Verdict, until int) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindCeiling, Service: service, Body: ledger.Ceiling{
		Action: action, To: to, By: "os:alice", Reason: "look", Until: untilMinute(until),
	}}
}

func untilMinute(m int) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return minute(m)
}

func resetUntil(service, action string, until int) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindReset, Service: service, Body: ledger.Reset{
		Action: action, By: "os:alice", Reason: "fixed", Until: untilMinute(until),
	}}
}

func lowered(service, to string) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindLowered, Service: service, Body: ledger.Lowered{To: to, By: "os:alice", Reason: "NTP"}}
}

func adopted() ledger.Draft {
	return ledger.Draft{Kind: ledger.KindAdopted, Body: ledger.Adopted{
		Seen: ledger.Position{Seq: 99, Hash: "lost"}, By: "os:alice", Reason: "the disk is gone",
	}}
}

func TestCeiling(t *testing.T) {
	const c = "checkout"
	auto, approval, esc, deny := gate.Auto, gate.Approval, gate.Escalate, gate.Deny
	type when struct {
		minute int
		want   gate.Verdict
	}
	tests := map[string]struct {
		reason string
		steps  []step
		want   []when
	}{
		"none":    {"nobody said anything", nil, []when{{0, auto}}},
		"lowered": {"lowered for good", []step{at(1, ceiling(c, "scale", esc, 0))}, []when{{2, esc}, {9999, esc}}},
		"until":   {"an end gives back what was", []step{at(1, ceiling(c, "scale", esc, 5))}, []when{{4, esc}, {5, auto}}},
		"raised":  {"a raise stands alone", []step{at(1, ceiling(c, "scale", deny, 0)), at(2, ceiling(c, "scale", auto, 0))}, []when{{3, auto}}},
		"raised, until": {
			"a raise that ends leaves the lower one",
			[]step{at(1, ceiling(c, "scale", approval, 0)), at(2, ceiling(c, "scale", auto, 10))},
			[]when{{9, auto}, {10, approval}, {9999, approval}},
		},
		"short in long": {
			"after a short one the long one holds, and after that what was before both",
			[]step{at(1, ceiling(c, "scale", approval, 0)), at(2, ceiling(c, "scale", auto, 60)), at(3, ceiling(c, "scale", deny, 30))},
			[]when{{29, deny}, {30, auto}, {59, auto}, {60, approval}},
		},
		"long after short": {
			"one that holds longer is all that is left of both",
			[]step{at(1, ceiling(c, "scale", approval, 0)), at(2, ceiling(c, "scale", auto, 30)), at(3, ceiling(c, "scale", deny, 60))},
			[]when{{30, deny}, {59, deny}, {60, approval}},
		},
		"for good after short": {
			"for good is for good",
			[]step{at(1, ceiling(c, "scale", auto, 30)), at(2, ceiling(c, "scale", esc, 0))},
			[]when{{29, esc}, {31, esc}},
		},
		"service":              {"a service's holds for its actions", []step{at(1, ceiling(c, "", esc, 0))}, []when{{2, esc}}},
		"service and action":   {"the lower of both", []step{at(1, ceiling(c, "", approval, 0)), at(1, ceiling(c, "scale", esc, 9))}, []when{{2, esc}, {9, approval}}},
		"raised in the action": {"an action is not raised above its service", []step{at(1, ceiling(c, "", esc, 0)), at(1, ceiling(c, "scale", auto, 0))}, []when{{2, esc}}},
		"others":               {"others are none of it", []step{at(1, ceiling("search", "scale", deny, 0)), at(1, ceiling(c, "restart", deny, 0))}, []when{{2, auto}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, tt.steps...)
			ch.noSkips()
			for _, w := range tt.want {
				if got := ch.state.Ceiling(c, "scale", minute(w.minute)); got != w.want {
					t.Errorf("%s: %s at minute %d, want %s", tt.reason, got, w.minute, w.want)
				}
			}
		})
	}
}

func TestCeilingMovesClaims(t *testing.T) {
	ch := newChain(t)
	decided := ch.state.Head
	ch.add(at(1, ceiling("checkout", "scale", gate.Deny, 0)))
	if err := ledger.ClaimAllowed(ch.state, "checkout", claimOf(keyAt("checkout", 0)), decided); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("a claim that was decided before a ceiling: %v", err)
	}
}

func TestCeilingDraft(t *testing.T) {
	ch := newChain(t, at(1, ceiling("checkout", "scale", gate.Escalate, 10)))
	for _, tt := range []struct {
		to   gate.Verdict
		now  int
		want error
	}{{gate.Escalate, 5, ledger.ErrExists}, {gate.Auto, 5, nil}, {gate.Auto, 10, ledger.ErrExists}, {gate.Escalate, 10, nil}} {
		_, err := ledger.CeilingDraft(ch.state, "checkout", ledger.Ceiling{Action: "scale", To: tt.to, By: "os:a", Reason: "r"}, minute(tt.now))
		if !errors.Is(err, tt.want) {
			t.Errorf("to %s at minute %d: got %v, want %v", tt.to, tt.now, err, tt.want)
		}
	}
}

// TestResetUntil: what a reset forgave comes back when it ends, and what an
// earlier one forgave for longer stays forgiven.
func TestResetUntil(t *testing.T) {
	const c = "checkout"
	policy := budget.Policy{Period: 28 * 24 * time.Hour, Capacity: 100}
	type when struct {
		minute    int
		suspended bool
		spent     float64
	}
	ww := func(m int) []step { return append(worsened(m), worsened(m+10)...) }
	tests := map[string]struct {
		reason string
		steps  []step
		want   []when
	}{
		"for good": {"forgiven for good", append(ww(10), at(40, resetUntil(c, "scale", 0))), []when{{41, false, 0}, {9999, false, 0}}},
		"until":    {"it comes back", append(ww(10), at(40, resetUntil(c, "scale", 100))), []when{{99, false, 0}, {100, true, 4}}},
		"service":  {"a reset of the service forgives rows, not the action's charges", append(ww(10), at(40, resetUntil(c, "", 100))), []when{{99, false, 4}, {100, true, 4}}},
		"row goes on": {
			"the whole row counts again", append(append(ww(10), at(40, resetUntil(c, "scale", 100))), worsened(50)...),
			[]when{{99, false, 2}, {100, true, 6}},
		},
		"short after good": {
			"what was forgiven for good stays forgiven",
			append(append(append(ww(10), at(40, resetUntil(c, "scale", 0))), worsened(50)...), at(60, resetUntil(c, "scale", 100))),
			[]when{{99, false, 0}, {100, false, 2}},
		},
		"short in long": {
			"the long one holds on",
			append(append(append(ww(10), at(40, resetUntil(c, "scale", 300))), worsened(50)...), at(60, resetUntil(c, "scale", 100))),
			[]when{{99, false, 0}, {100, false, 2}, {299, false, 2}, {300, true, 6}},
		},
		"long after short": {
			"the later and longer one is all that counts",
			append(append(append(ww(10), at(40, resetUntil(c, "scale", 100))), worsened(50)...), at(60, resetUntil(c, "scale", 300))),
			[]when{{100, false, 0}, {299, false, 0}, {300, true, 6}},
		},
		"other action": {"another action's reset is none", append(ww(10), at(40, resetUntil(c, "restart", 0))), []when{{41, true, 4}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, tt.steps...)
			ch.noSkips()
			for _, w := range tt.want {
				now := minute(w.minute)
				b := budget.Of(c, "scale", policy, policy, ch.state.Charges(), ch.state.Resets, now)
				got := when{w.minute, ch.state.Suspended(c, "scale", now) != "", 100 - b.Remaining}
				if diff := cmp.Diff(w, got, cmp.AllowUnexported(when{})); diff != "" {
					t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
				}
			}
		})
	}
}

// worsened is one life that did harm, claimed at a minute.
func worsened(m int) []step {
	const c = "checkout"
	k := keyAt(c, m)
	return []step{
		at(m, claim(c, claimOf(k))), at(m, started(c, k)), at(m+1, receipt(c, k, execute.Applied, m+1)), at(m+5, outcome(c, k, "worsened", 2)),
	}
}

// The minute of a clock that runs a year ahead, and the window then.
const ahead = 365 * 24 * 60

// TestLowered: the chain goes on with the present time, and nothing but what
// the entry names is set back.
func TestLowered(t *testing.T) {
	const c = "checkout"
	k := keyAt(c, ahead)
	ch := newChain(t, at(0, documents(map[string]string{c: "1", "search": "1"})), at(1, state(c, "", met)), at(2, state(c, met, breached)))
	ch.add(worsened(10)...)
	ch.add(at(ahead, asked(c, windowAt(ahead))), at(ahead, claim(c, claimOf(k))), at(ahead, started(c, k)),
		at(ahead, receipt(c, k, execute.Applied, ahead)), at(ahead+5, outcome(c, k, "worsened", 2)),
		at(ahead+5, asked("search", windowAt(ahead))))
	if sv, _ := ch.state.Service(c); sv.Window(minute(30), 10*time.Minute).String() != windowAt(ahead) {
		t.Fatal("a clock that steps back moved the mark")
	}
	ds, err := ledger.LoweredDrafts(ch.state, map[string]gate.WindowID{c: gate.WindowAt(minute(30), 10*time.Minute)}, "os:alice", "NTP", minute(31))
	if err != nil || len(ds) != 2 || ds[0].Service != "" || ds[1].Service != c {
		t.Fatalf("drafts %+v, %v", ds, err)
	}
	ch.add(at(31, ds[0]), at(31, ds[1]))
	ch.noSkips()
	sv, _ := ch.state.Service(c)
	if got := sv.Window(minute(31), 10*time.Minute).String(); got != windowAt(30) {
		t.Errorf("the window is %s, want %s", got, windowAt(30))
	}
	if _, kept := sv.Windows[windowAt(ahead)]; kept {
		t.Error("a window of the future is kept")
	}
	if other, _ := ch.state.Service("search"); other.Mark.String() != windowAt(ahead) {
		t.Errorf("the mark of another service went to %s", other.Mark)
	}
	for m, want := range map[int]bool{10: true, 20: true, 30: false, 40: false, ahead: true} {
		w := gate.WindowAt(minute(m), 10*time.Minute)
		if got := ch.state.KeyClaimed(c, w); got != want {
			t.Errorf("window of minute %d claimed %v, want %v", m, got, want)
		}
		allowed := ledger.ClaimAllowed(ch.state, c, claimOf(gate.KeyOf(c, w)), ch.state.Head)
		if (allowed != nil) != want {
			t.Errorf("claim of minute %d: %v", m, allowed)
		}
	}
	if got := minuteOf(ch.state.LastSent(c, "scale")); got != 31 {
		t.Errorf("sent at %d: spacing waits for a time that has not come", got)
	}
	if n := ch.state.Sent(c, minute(12)); n != 1 {
		t.Errorf("%d sent within the last hour, want the one of the clock that ran ahead", n)
	}
	ch.add(at(32, resetUntil(c, "scale", 0)))
	p := budget.Policy{Period: 28 * 24 * time.Hour, Capacity: 9}
	if b := budget.Of(c, "scale", p, p, ch.state.Charges(), ch.state.Resets, minute(33)); b.Remaining != 9 {
		t.Errorf("%v remain after a reset, want 9: %+v", b.Remaining, b.Charges)
	}
	if ch.state.Suspended(c, "scale", minute(33)) != "" {
		t.Error("suspended after a reset")
	}
	if _, err := ledger.LoweredDrafts(ch.state, map[string]gate.WindowID{c: gate.WindowAt(minute(33), 10*time.Minute)}, "os:alice", "again", minute(33)); !errors.Is(err, ledger.ErrNothing) {
		t.Errorf("lowering what is not ahead: %v", err)
	}
	same := ch.state.Clone()
	e, err := ledger.Link(same.Head, minute(34), lowered(c, windowAt(ahead)))
	if err != nil {
		t.Fatal(err)
	}
	if err := same.Apply(e); err != nil || len(same.Skipped) != 1 {
		t.Errorf("a mark was raised by lowering it: %v, %v", err, same.Skipped)
	}
}

// TestLoweredEndsWhatWaits: a claim that was never started, and a ticket whose
// key lies in the future, would wait for years.
func TestLoweredEndsWhatWaits(t *testing.T) {
	const c, s = "checkout", "search"
	later := ticket(s, keyAt(s, ahead)).Body.(approve.Ticket)
	later.Expires = minute(ahead + 15)
	ch := newChain(t,
		at(ahead, claim(c, claimOf(keyAt(c, ahead)))), at(ahead, ledger.Draft{Kind: ledger.KindTicket, Service: s, Body: later}), at(ahead, answer("t3", "os:alice", true, ahead)))
	now := gate.WindowAt(minute(30), 10*time.Minute)
	ds, err := ledger.LoweredDrafts(ch.state, map[string]gate.WindowID{c: now, s: now}, "os:alice", "NTP", minute(30))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		ch.add(at(30, d))
	}
	ch.noSkips()
	if len(ch.state.Unsettled) != 0 || ch.state.Tickets["t3"].State != approve.Void {
		t.Errorf("unsettled %v, ticket %s", ch.state.Unsettled, ch.state.Tickets["t3"].State)
	}
	for _, service := range []string{c, s} {
		if err := ledger.ClaimAllowed(ch.state, service, claimOf(keyAt(service, 30)), ch.state.Head); err != nil {
			t.Errorf("%s: %v", service, err)
		}
	}
}

// TestInTime: only a person's word sets the time of a chain back.
func TestInTime(t *testing.T) {
	ch := newChain(t, at(10, gap()))
	for _, tt := range []struct {
		draft ledger.Draft
		want  error
	}{{gap(), ledger.ErrCorrupt}, {reset("", ""), ledger.ErrCorrupt}, {adopted(), ledger.ErrCorrupt}, {lowered("", ""), nil}, {lowered("checkout", windowAt(0)), nil}} {
		e, err := ledger.Link(ch.state.Head, minute(5), tt.draft)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.state.Clone().Apply(e); !errors.Is(err, tt.want) {
			t.Errorf("%s back in time: got %v, want %v", tt.draft.Kind, err, tt.want)
		}
	}
	for _, tt := range []struct {
		drafts []ledger.Draft
		now    int
		want   int
	}{{[]ledger.Draft{gap()}, 5, 10}, {[]ledger.Draft{gap()}, 15, 15}, {nil, 5, 10}, {[]ledger.Draft{lowered("", ""), gap()}, 5, 5}} {
		if got := minuteOf(ledger.Stamp(minute(tt.now), ch.state.Time, tt.drafts)); got != tt.want {
			t.Errorf("stamped minute %d, want %d", got, tt.want)
		}
	}
}

func TestAdopted(t *testing.T) {
	ch := newChain(t, at(1, state("checkout", "", breached)), at(12, adopted()))
	for _, tt := range []struct {
		service string
		minute  int
		want    bool
	}{
		{"checkout", 0, true},
		{"checkout", 10, true},
		{"checkout", 20, false},
		{"unknown", 10, true},
		{"unknown", 20, false},
	} {
		w := gate.WindowAt(minute(tt.minute), 10*time.Minute)
		if got := ch.state.KeyClaimed(tt.service, w); got != tt.want {
			t.Errorf("%s at %d: claimed %v, want %v", tt.service, tt.minute, got, tt.want)
		}
		err := ledger.ClaimAllowed(ch.state, tt.service, claimOf(gate.KeyOf(tt.service, w)), ch.state.Head)
		if (err != nil) != tt.want || err != nil && !errors.Is(err, ledger.ErrLost) {
			t.Errorf("%s at %d: %v, want lost %v", tt.service, tt.minute, err, tt.want)
		}
		if _, err := ledger.TicketDraft(ch.state, tt.service, approve.Ticket{Key: gate.KeyOf(tt.service, w)}); (err != nil) != tt.want {
			t.Errorf("ticket of %s at %d: %v", tt.service, tt.minute, err)
		}
	}
	if err := ledger.ClaimAllowed(ch.state, "checkout", claimOf(keyAt("checkout", 20)), ledger.Position{Seq: 2}); !errors.Is(err, ledger.ErrLost) {
		t.Errorf("a claim that was decided before the adoption: %v", err)
	}
	// Adopted by a clock that ran ahead, which is then set back.
	ch.add(at(ahead, adopted()), at(30, lowered("", "")))
	if ch.state.KeyClaimed("checkout", gate.WindowAt(minute(40), 10*time.Minute)) {
		t.Error("every window of a year is spent")
	}
}

// A decision names its policy by revision, so the chain must hold that bundle:
// once, until another one rules.
func TestPolicyDraft(t *testing.T) {
	one, two := []byte("one"), []byte("two")
	of := func(bundle []byte, shadow bool) ledger.Policy {
		return ledger.Policy{Revision: ledger.BlobDigest(bundle), Data: ledger.BlobDigest(nil), Shadow: shadow}
	}
	first, err := ledger.PolicyDraft(ledger.NewState(), of(one, false), one)
	if err != nil {
		t.Fatal(err)
	}
	ch := newChain(t, at(0, first))
	tests := map[string]struct {
		reason string
		policy ledger.Policy
		bundle []byte
		want   error
		// says is part of an error that has no name.
		says string
	}{
		"Same":    {"the one that rules is not recorded again", of(one, false), one, ledger.ErrExists, ""},
		"Other":   {"another one is", of(two, false), two, nil, ""},
		"Shadow":  {"a shadow is another matter", of(one, true), one, nil, ""},
		"Foreign": {"a bundle that is not the revision's is refused", of(one, true), two, nil, "the bundle is another one"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ledger.PolicyDraft(ch.state, tt.policy, tt.bundle)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: %v", tt.reason, err)
				}
				return
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.reason, err, tt.want)
			}
		})
	}
	if ch.state.Policy != ledger.BlobDigest(one) || ch.state.ShadowPolicy != "" {
		t.Errorf("recorded %q and shadow %q", ch.state.Policy, ch.state.ShadowPolicy)
	}
}

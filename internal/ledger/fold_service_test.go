package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

const (
	met      = compare.Met
	breached = compare.Breached
	unknown  = compare.Unknown
)

// never stands for a zero time among minutes.
const never = -1

func minuteOf(t time.Time) int {
	if t.IsZero() {
		return never
	}
	return int(t.Sub(start) / time.Minute)
}

// measured is the part of a service that measurement gives, in minutes.
type measured struct {
	State                          compare.State
	Since, Held, LastMet, Quiet    int
	Episode                        string
	EpisodeSince                   int
	EverMet                        bool
	QuietFor, Documents, Unmatched int
}

func measuredOf(s *ledger.State, name string) measured {
	sv, _ := s.Service(name)
	return measured{
		State: sv.State, Since: minuteOf(sv.Since), Held: minuteOf(sv.HeldSince), LastMet: minuteOf(sv.LastMet),
		Quiet: minuteOf(sv.QuietSince), Episode: sv.Episode, EpisodeSince: minuteOf(sv.EpisodeSince), EverMet: sv.EverMet,
		QuietFor: int(sv.QuietFor / time.Minute), Documents: minuteOf(sv.DocumentsAt), Unmatched: len(s.Skipped),
	}
}

func TestFoldMeasured(t *testing.T) {
	const c = "checkout"
	one, two := map[string]string{c: "1"}, map[string]string{c: "2"}
	tests := map[string]struct {
		reason string
		steps  []step
		want   measured
	}{
		"first met": {
			"a first reading that is Met begins no episode",
			[]step{at(1, state(c, "", met))},
			measured{met, 1, 1, 1, 1, "", never, true, 0, never, 0},
		},
		"first unknown": {
			"a first reading that is not Met begins one",
			[]step{at(1, state(c, "", unknown))},
			measured{unknown, 1, never, never, never, "e2", 1, false, 0, never, 0},
		},
		"leaves met": {
			"the entry that leaves Met names the episode",
			[]step{at(1, state(c, "", met)), at(5, state(c, met, breached))},
			measured{breached, 5, never, 5, never, "e3", 5, true, 4, never, 0},
		},
		"worse in the episode": {
			"a change inside an episode moves Since and not the episode",
			[]step{at(1, state(c, "", met)), at(5, state(c, met, breached)), at(8, state(c, breached, unknown))},
			measured{unknown, 8, never, 5, never, "e3", 5, true, 4, never, 0},
		},
		"reason only": {
			"a change of the reason alone is no change of state",
			[]step{at(5, state(c, "", breached)), at(8, state(c, breached, breached))},
			measured{breached, 5, never, never, never, "e2", 5, false, 0, never, 0},
		},
		"met and not yet held": {
			"the episode lasts until Met was held",
			[]step{at(5, state(c, "", breached)), at(9, state(c, breached, met))},
			measured{met, 9, 9, 9, never, "e2", 5, true, 0, never, 0},
		},
		"relapse": {
			"a relapse inside holdFor is the same episode",
			[]step{at(5, state(c, "", breached)), at(9, state(c, breached, met)), at(11, state(c, met, breached))},
			measured{breached, 11, never, 11, never, "e2", 5, true, 0, never, 0},
		},
		"recovered": {
			"held Met ends the episode",
			[]step{at(5, state(c, "", breached)), at(9, state(c, breached, met)), at(14, recovered(c, "e2"))},
			measured{met, 9, 9, 9, 14, "", never, true, 0, never, 0},
		},
		"recovered after a relapse": {
			"a recovery that lost against a relapse ends nothing",
			[]step{at(5, state(c, "", breached)), at(9, recovered(c, "e2"))},
			measured{breached, 5, never, never, never, "e2", 5, false, 0, never, 1},
		},
		"recovered from another episode": {
			"a late recovery does not end the next episode",
			[]step{
				at(5, state(c, "", breached)), at(9, state(c, breached, met)), at(14, recovered(c, "e2")),
				at(15, state(c, met, breached)), at(16, state(c, breached, met)), at(17, recovered(c, "e2")),
			},
			measured{met, 16, 16, 16, never, "e5", 15, true, 1, never, 1},
		},
		"gap while met": {
			"an unwatched time restarts holdFor and not Since",
			[]step{at(5, state(c, "", breached)), at(9, state(c, breached, met)), at(30, gap())},
			measured{met, 9, 30, 9, never, "e2", 5, true, 0, never, 0},
		},
		"gap while breached": {
			"an unwatched time does not restart unknownFor or escalateWithin",
			[]step{at(5, state(c, "", breached)), at(30, gap())},
			measured{breached, 5, never, never, never, "e2", 5, false, 0, never, 0},
		},
		"stale from": {
			"a change from a state that is not the present one lost a race",
			[]step{at(1, state(c, "", met)), at(2, state(c, met, breached)), at(3, state(c, met, unknown))},
			measured{breached, 2, never, 2, never, "e3", 2, true, 1, never, 1},
		},
		"documents first": {
			"the first load counts as a change",
			[]step{at(3, documents(one))},
			measured{"", never, never, never, never, "", never, false, 0, 3, 0},
		},
		"documents same": {
			"a load of the same digest is none",
			[]step{at(3, documents(one)), at(4, state(c, "", met)), at(9, documents(one))},
			measured{met, 4, 4, 4, 4, "", never, true, 0, 3, 0},
		},
		"documents changed": {
			"what was met under other documents is not met yet",
			[]step{at(3, documents(one)), at(4, state(c, "", met)), at(9, documents(two))},
			measured{met, 4, 4, 4, 4, "", never, false, 0, 9, 0},
		},
		"met under changed documents": {
			"a reading that says Met again says that they can be met",
			[]step{at(3, documents(one)), at(4, state(c, "", met)), at(9, documents(two)), at(10, state(c, met, met))},
			measured{met, 4, 4, 4, 4, "", never, true, 0, 9, 0},
		},
		"documents gone": {
			"a service that no document names is not measured any more",
			[]step{at(3, documents(one)), at(4, state(c, "", breached)), at(9, documents(nil))},
			measured{"", never, never, never, never, "", never, false, 0, 9, 0},
		},
		"documents back": {
			"and begins anew when one names it again",
			[]step{at(3, documents(one)), at(4, state(c, "", breached)), at(9, documents(nil)), at(20, documents(one)), at(21, state(c, "", unknown))},
			measured{unknown, 21, never, never, never, "e6", 21, false, 0, 20, 0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := newChain(t, tt.steps...)
			if diff := cmp.Diff(tt.want, measuredOf(got.state, c)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestDocumentsSettled(t *testing.T) {
	const c = "checkout"
	load := documents(map[string]string{c: "1"})
	other := documents(map[string]string{c: "2"})
	tests := map[string]struct {
		reason string
		steps  []step
		now    int
		want   bool
	}{
		"not met yet":    {"nothing was measured", []step{at(0, load)}, 60, false},
		"quiet":          {"five minutes without an episode", []step{at(0, load), at(1, state(c, "", met))}, 6, true},
		"not long":       {"four minutes are no five", []step{at(0, load), at(1, state(c, "", met))}, 5, false},
		"breach at once": {"an episode before holdFor", []step{at(0, load), at(1, state(c, "", met)), at(3, state(c, met, breached))}, 60, false},
		"breach later":   {"quiet before the episode counts during it", []step{at(0, load), at(1, state(c, "", met)), at(30, state(c, met, breached))}, 31, true},
		"change in the episode": {
			"documents that change in an episode have not been quiet",
			[]step{at(0, load), at(1, state(c, "", met)), at(30, state(c, met, breached)), at(31, other)}, 60, false,
		},
		"unwatched": {
			"time that nobody watched is not quiet",
			[]step{at(0, load), at(1, state(c, "", met)), at(30, gap()), at(32, state(c, met, breached))}, 33, false,
		},
		"watched before the gap": {
			"what was watched before stays counted",
			[]step{at(0, load), at(1, state(c, "", met)), at(20, reset("", "")), at(30, gap()), at(32, state(c, met, breached))}, 33, true,
		},
		"held after recovery": {
			"quiet begins where Met began to be held, and not before",
			[]step{at(0, load), at(1, state(c, "", breached)), at(5, state(c, breached, met)), at(10, recovered(c, "e3"))}, 12, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newChain(t, tt.steps...).state
			sv, _ := s.Service(c)
			if got := sv.DocumentsSettled(5*time.Minute, minute(tt.now)); got != tt.want {
				t.Errorf("%s: settled %v, want %v", tt.reason, got, tt.want)
			}
		})
	}
}

func TestFoldWindows(t *testing.T) {
	const c = "checkout"
	w := windowAt(0)
	none, act := propose.Proposal{Kind: propose.KindNone}, propose.Proposal{Kind: propose.KindAction, Action: "scale"}
	undo := propose.Proposal{Kind: propose.KindAction, Action: "scale", Undo: true}
	deny := gate.Decision{Verdict: gate.Deny}
	tests := map[string]struct {
		reason   string
		steps    []step
		final    string
		kind     propose.Kind
		decision string
		skipped  int
	}{
		"asked":             {"asking ends nothing", []step{at(0, asked(c, w))}, "", "", "", 0},
		"asked twice":       {"one ask in a window", []step{at(0, asked(c, w)), at(1, asked(c, w))}, "", "", "", 1},
		"none":              {"none is final", []step{at(0, proposed(c, w, none))}, ledger.FinalNone, propose.KindNone, "", 0},
		"malformed":         {"malformed is final", []step{at(0, proposed(c, w, propose.Proposal{Kind: propose.KindMalformed}))}, ledger.FinalMalformed, propose.KindMalformed, "", 0},
		"second proposal":   {"the first proposal stays", []step{at(0, proposed(c, w, act)), at(1, proposed(c, w, none))}, "", propose.KindAction, "", 1},
		"undo goes first":   {"an undo takes a proposal's place", []step{at(0, proposed(c, w, none)), at(1, proposed(c, w, undo))}, "", propose.KindAction, "", 0},
		"undo once":         {"and not another undo's", []step{at(0, proposed(c, w, undo)), at(1, proposed(c, w, undo))}, "", propose.KindAction, "", 1},
		"denied":            {"a denial is final", []step{at(0, decided(c, w, deny))}, ledger.FinalDenied, "", "d2", 0},
		"denied, undefined": {"policy that says nothing denies", []step{at(0, decided(c, w, gate.Decision{Ruling: gate.Ruling{Fault: "undefined: no rule"}}))}, ledger.FinalDenied, "", "d2", 0},
		"held":              {"what time lifts is judged again", []step{at(0, decided(c, w, gate.Decision{Hold: true}))}, "", "", "d2", 0},
		"policy fault":      {"a policy fault is judged again", []step{at(0, decided(c, w, gate.Decision{Ruling: gate.Ruling{Fault: "error: x"}}))}, "", "", "d2", 0},
		"escalated":         {"an escalation may be judged again", []step{at(0, decided(c, w, gate.Decision{Verdict: gate.Escalate}))}, "", "", "d2", 0},
		"ticket denied":     {"a person's no is final", []step{at(0, ticket(c, keyAt(c, 0))), at(1, answer("t2", "os:alice", false, 1))}, ledger.FinalDenied, "", "", 0},
		"ticket expired":    {"an expiry too", []step{at(0, ticket(c, keyAt(c, 0))), at(1, ticketEnd("t2", "expired"))}, ledger.FinalExpired, "", "", 0},
		"latest decision":   {"the last decision is the window's", []step{at(0, decided(c, w, gate.Decision{Hold: true})), at(1, decided(c, w, gate.Decision{Verdict: gate.Auto}))}, "", "", "d3", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newChain(t, tt.steps...).state
			sv, _ := s.Service(c)
			got := sv.Windows[w]
			if got == nil {
				t.Fatal("the window is not there")
			}
			kind := propose.Kind("")
			if got.Proposed != nil {
				kind = got.Proposed.Proposal.Kind
			}
			if got.Final != tt.final || kind != tt.kind || got.Decision != tt.decision || len(s.Skipped) != tt.skipped {
				t.Errorf("%s: final %q, proposal %q, decision %q, %d skipped; want %q, %q, %q, %d",
					tt.reason, got.Final, kind, got.Decision, len(s.Skipped), tt.final, tt.kind, tt.decision, tt.skipped)
			}
		})
	}
}

func TestWindowsArePruned(t *testing.T) {
	c := newChain(t)
	for i := range 20 {
		c.add(at(10*i, asked("checkout", windowAt(10*i))))
	}
	// A clock that stepped back: the window is recorded, the mark stays.
	c.add(at(200, asked("checkout", windowAt(0))))
	sv, _ := c.state.Service("checkout")
	if len(sv.Windows) != 8 || sv.Windows[windowAt(190)] == nil || sv.Windows[windowAt(120)] == nil {
		t.Errorf("kept %d windows, want the newest 8", len(sv.Windows))
	}
	if got := sv.Mark.String(); got != windowAt(190) {
		t.Errorf("mark %s, want %s", got, windowAt(190))
	}
	for _, tt := range []struct {
		minute int
		length time.Duration
		want   string
	}{
		{195, 10 * time.Minute, windowAt(190)},
		{200, 10 * time.Minute, windowAt(200)},
		{50, 10 * time.Minute, windowAt(190)},
		{191, time.Minute, gate.WindowAt(minute(191), time.Minute).String()},
		{190, time.Minute, windowAt(190)},
		{195, time.Hour, windowAt(190)},
	} {
		if got := sv.Window(minute(tt.minute), tt.length).String(); got != tt.want {
			t.Errorf("window at minute %d of %s is %s, want %s", tt.minute, tt.length, got, tt.want)
		}
	}
}

func TestFreezes(t *testing.T) {
	freeze := func(id, service string, until int) ledger.Draft {
		f := ledger.Freeze{ID: id, Service: service, By: "os:alice", Reason: "x", At: minute(0)}
		if until != never {
			f.Until = minute(until)
		}
		return ledger.Draft{Kind: ledger.KindFreeze, Body: f}
	}
	thaw := func(id string) ledger.Draft {
		return ledger.Draft{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: id, By: "os:alice"}}
	}
	tests := map[string]struct {
		reason  string
		steps   []step
		now     int
		want    []string
		moved   uint64
		skipped int
	}{
		"none":        {"nothing frozen", nil, 1, nil, 0, 0},
		"all":         {"a freeze of everything and one of the service", []step{at(1, freeze("b", "", never)), at(1, freeze("a", "checkout", never))}, 1, []string{"a", "b"}, 3, 0},
		"other":       {"another's freeze", []step{at(1, freeze("a", "search", never))}, 1, nil, 2, 0},
		"until":       {"a freeze ends by itself", []step{at(1, freeze("a", "", 5))}, 5, nil, 2, 0},
		"before":      {"and not before", []step{at(1, freeze("a", "", 5))}, 4, []string{"a"}, 2, 0},
		"thawed":      {"a thaw lifts it", []step{at(1, freeze("a", "", never)), at(2, thaw("a"))}, 3, nil, 3, 0},
		"file again":  {"a file that is copied again after the thaw is not believed", []step{at(1, freeze("a", "", never)), at(2, thaw("a")), at(3, freeze("a", "", never))}, 3, nil, 3, 1},
		"thaw of one": {"a file may be lifted before it was recorded", []step{at(1, thaw("a")), at(2, freeze("a", "", never))}, 3, nil, 2, 1},
		"copied once": {"copying twice changes nothing", []step{at(1, freeze("a", "", never)), at(2, freeze("a", "", 2))}, 3, []string{"a"}, 2, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newChain(t, tt.steps...).state
			var got []string
			for _, f := range s.Frozen("checkout", minute(tt.now)) {
				got = append(got, f.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || s.ClaimsMoved != tt.moved || len(s.Skipped) != tt.skipped {
				t.Errorf("%s: moved %d, skipped %v, want %d, %d; freezes -want +got:\n%s", tt.reason, s.ClaimsMoved, s.Skipped, tt.moved, tt.skipped, diff)
			}
		})
	}
}

func TestServiceNames(t *testing.T) {
	c := newChain(t, at(1, documents(map[string]string{"b": "1", "a": "1", "c": "1"})), at(2, documents(map[string]string{"b": "1", "a": "2"})))
	if got := fmt.Sprint(c.state.ServiceNames()); got != "[a b]" {
		t.Errorf("names %s, want those of documents, sorted", got)
	}
	if _, ok := c.state.Service("nobody"); ok {
		t.Error("a service that was never named is there")
	}
}

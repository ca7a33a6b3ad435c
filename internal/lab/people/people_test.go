package people_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/people"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// play plays a plan in simulated time.
func play(t *testing.T, p people.Plan, log *slog.Logger) (r people.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = people.Play(t.Context(), p, log); err != nil {
			t.Fatalf("seed %d (%s): %v", p.Seed, p.Theme, err)
		}
	})
	return r
}

// TestPeopleKnow: whatever the reason why it cannot act while an SLO is missed, a
// person knows within escalateWithin, one sweep and the receiver's retry.
// SETPOINT_PEOPLE_SEEDS plays more, SETPOINT_PEOPLE_SEED one alone and aloud.
func TestPeopleKnow(t *testing.T) {
	from, to := seeds(t)
	covered, due := map[string]int{}, 0
	for seed := from; seed < to; seed++ {
		p := people.Draw(seed)
		log := slog.New(slog.DiscardHandler)
		if to == from+1 {
			log = slog.New(slog.NewTextHandler(t.Output(), nil))
			for _, w := range p.Windows {
				t.Log(w)
			}
			t.Logf("%+v", p)
		}
		r := play(t, p, log)
		for i, v := range r.Violations {
			if i < 3 {
				t.Errorf("seed %d (%s): %s", seed, p.Theme, v)
			}
		}
		due += r.Due
		for what, n := range r.Covered {
			covered[what] += n
		}
	}
	for _, what := range slices.Sorted(maps.Keys(covered)) {
		t.Logf("%6d %s", covered[what], what)
	}
	t.Logf("%d misses judged in %d plays", due, to-from)
	meets := mustMeet
	switch n := to - from; {
	case n < ordinary:
		meets = nil
	case n >= many:
		meets = append(meets, rare...)
	}
	for _, what := range meets {
		if covered[what] == 0 {
			t.Errorf("no play met %q, so nothing is known of it", what)
		}
	}
}

// ordinary is how many seeds are played without being told; many see what is rare.
const (
	ordinary = 42
	many     = 200
)

// mustMeet are what the seeds have to meet, or the property says less than it
// seems to.
var mustMeet = []string{
	"due: missed", "due: unknown", "missed in observe",
	"due: first receiver down", "due: first receiver hangs", "due: first receiver loses the reply",
	"told by a further receiver", "nobody could be reached",
	"due: channel down", "due: channel hangs", "due: channel limits", "due: cards are deleted",
	"a card was not posted", "a card was deleted",
	"due: ledger cannot be written", "due: ledger cannot be read", "due: frozen", "due: policy fault",
	"due: model is silent", "due: model proposes nothing", "due: source down",
	"due: one of 1 died", "due: one of 2 died",
	"ticket expired", "ticket denied", "ticket approved", "ticket withdrawn",
	"an action was sent", "a person answered", "a page was acknowledged", "reason budget-spent",
	"storm brake", "told by the storm's page",
	"told because: cannot-act", "told because: approval-expired", "told because: blind",
}

// rare is what only many seeds meet for sure.
var rare = []string{
	"due: channel loses the reply", "the reply to a post was lost", "ticket void",
	"told because: in-doubt", "told because: approval-void", "told by the page of a dependency",
}

func seeds(t *testing.T) (from, to uint64) {
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		return n
	}
	if one := number("SETPOINT_PEOPLE_SEED", 0); one > 0 {
		return one, one + 1
	}
	return 1, 1 + number("SETPOINT_PEOPLE_SEEDS", ordinary)
}

// TestLedgerAway: a ledger that cannot be used for a while, and comes back, makes
// nobody wait anew; and an action whose outcome nobody can record does not pass
// for help for as long as the ledger is away.
func TestLedgerAway(t *testing.T) {
	// Frozen, nothing is asked, and only the wait tells people.
	frozen := people.Window{Fault: people.Frozen, From: 12 * time.Minute, To: 90 * time.Minute}
	plans := map[string]struct {
		reason  string
		windows []people.Window
	}{
		"back just before it is due": {"the miss began long before the ledger heard of it",
			[]people.Window{frozen, {Fault: people.ReadOnly, From: 12 * time.Minute, To: 33 * time.Minute}}},
		"unreadable, and back": {"nor does one that could not even be read",
			[]people.Window{frozen, {Fault: people.Unreadable, From: 12 * time.Minute, To: 33 * time.Minute}}},
		"away while something is judged": {"the outcome is never recorded",
			[]people.Window{{Fault: people.ReadOnly, From: 22 * time.Minute, To: 70 * time.Minute}}},
	}
	for name, tc := range plans {
		t.Run(name, func(t *testing.T) {
			r := play(t, people.Plan{
				Theme: name, Receivers: []string{"first", "second"}, Replicas: 1, Capacity: 9,
				Services: []people.Service{{Name: "s0", Mode: spec.Auto, Class: spec.ClassAuto, Answer: people.Ignores}},
				Windows:  append(tc.windows, people.Window{Fault: people.Miss, Of: "s0", From: 14 * time.Minute, To: 75 * time.Minute}),
			}, slog.New(slog.NewTextHandler(t.Output(), nil)))
			if r.Due == 0 || len(r.Violations) > 0 {
				t.Errorf("%s: %d misses were due, and %q", tc.reason, r.Due, r.Violations[:min(2, len(r.Violations))])
			}
		})
	}
}

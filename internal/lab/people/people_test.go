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

	"github.com/setpoint-dev/setpoint/internal/lab/people"
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
	return 1, 1 + number("SETPOINT_PEOPLE_SEEDS", 20)
}

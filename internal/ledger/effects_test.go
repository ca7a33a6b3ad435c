package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

var allEffects = []execute.Effect{
	execute.None, execute.Claimed, execute.Void, execute.Started, execute.Applied, execute.AppliedWithError, execute.NoOp,
	execute.Failed, execute.NotNow, execute.InDoubt, execute.Landed, execute.NotLanded, execute.Unknown,
}

// TestEffectsEnd: an effect never becomes again what it was, so nothing is sent
// twice; and from wherever it stands it can become final, so nothing is locked
// for ever.
func TestEffectsEnd(t *testing.T) {
	var after func(e execute.Effect, seen []execute.Effect) []execute.Effect
	after = func(e execute.Effect, seen []execute.Effect) []execute.Effect {
		for _, next := range allEffects {
			if e.Follows(next) && !slices.Contains(seen, next) {
				seen = after(next, append(seen, next))
			}
		}
		return seen
	}
	for _, e := range allEffects {
		later := after(e, nil)
		if slices.Contains(later, e) {
			t.Errorf("%s can become %s again", e, e)
		}
		if e.Final() != (len(later) == 0) {
			t.Errorf("%s is final %v and can become %v", e, e.Final(), later)
		}
		if !e.Final() && !slices.ContainsFunc(later, execute.Effect.Final) {
			t.Errorf("%s can never become final", e)
		}
		if slices.Contains(later, execute.Started) && e != execute.None && e != execute.Claimed {
			t.Errorf("%s can be sent again", e)
		}
	}
}

// pathTo is how an effect comes to stand where it does.
func pathTo(key gate.Key, e execute.Effect) []step {
	const c = "checkout"
	steps := []step{at(1, claim(c, claimOf(key)))}
	switch e {
	case execute.None:
		return nil
	case execute.Claimed:
		return steps
	case execute.Void:
		return append(steps, at(2, void(c, key)))
	}
	steps = append(steps, at(2, started(c, key)))
	switch e {
	case execute.Started:
		return steps
	case execute.Landed, execute.NotLanded, execute.Unknown:
		return append(steps, at(3, settled(c, key, e, ledger.SettledByObservation)))
	}
	return append(steps, at(3, receipt(c, key, e, 3)))
}

// transition asks for one effect after whatever is, by the drafts that may give
// it: a receipt and a settlement can say the same.
func transition(s *ledger.State, key gate.Key, next execute.Effect) []error {
	var errs []error
	try := func(_ ledger.Draft, err error) { errs = append(errs, err) }
	switch next {
	case execute.Claimed:
		try(ledger.ClaimDraft(s, "checkout", claimOf(key), s.Head))
	case execute.Started:
		try(ledger.StartDraft(s, key))
	case execute.Void:
		try(ledger.VoidDraft(s, key, "expired"))
	default:
		try(ledger.ReceiptDraft(s, key, execute.Receipt{Effect: next, At: minute(4)}))
		try(ledger.SettleDraft(s, ledger.Settled{Key: key, Effect: next, By: "os:alice"}))
	}
	return errs
}

// TestDraftsTakeWhatFollows goes over all pairs: the drafts accept what the
// table of execute says, and nothing else.
func TestDraftsTakeWhatFollows(t *testing.T) {
	key := keyAt("checkout", 0)
	for _, from := range allEffects {
		ch := newChain(t, pathTo(key, from)...)
		ch.noSkips()
		if e := ch.state.Effects[key]; e != nil && e.Effect != from {
			t.Fatalf("the way to %s leads to %s", from, e.Effect)
		}
		for _, next := range allEffects[1:] {
			for i, err := range transition(ch.state, key, next) {
				if want := from.Follows(next); (err == nil) != want {
					t.Errorf("from %s to %s, way %d: got %v, want it taken %v", from, next, i, err, want)
				}
				if err != nil && !errors.Is(err, ledger.ErrLost) && !errors.Is(err, ledger.ErrExists) {
					t.Errorf("from %s to %s: %v, want one that says it was lost", from, next, err)
				}
			}
		}
	}
}

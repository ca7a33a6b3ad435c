package sqlite_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// replica is one appender with its own, possibly old, view of the chain.
type replica struct {
	store ledger.Store
	state *ledger.State
	// decided is what it decided, and from where, until it claims.
	claim   ledger.Claim
	service string
	decided ledger.Position
}

func newReplica(store ledger.Store) *replica {
	return &replica{store: store, state: ledger.NewState()}
}

// append appends a transition and folds what it then knows.
func (r *replica) append(decide func(*ledger.State) (ledger.Draft, error)) error {
	es, err := r.store.Append(context.Background(), r.state.Head, ledger.PlanFrom(r.state, func(s *ledger.State) ([]ledger.Draft, error) {
		d, err := decide(s)
		return []ledger.Draft{d}, err
	}))
	if err != nil {
		return err
	}
	return r.fold(es)
}

func (r *replica) fold(es []ledger.Entry) error {
	for _, e := range es {
		if err := r.state.Apply(e); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) catchUp() error {
	es, err := r.store.Read(context.Background(), r.state.Head.Seq, 1000)
	if err != nil {
		return err
	}
	return r.fold(es)
}

func claimOn(service, target string, window int64) ledger.Claim {
	return ledger.Claim{
		Key:    gate.KeyOf(service, gate.WindowID{Start: 600 * window, Length: 600}),
		Digest: "digest", Target: target, Action: spec.Action{Name: "scale"},
		Verdict: gate.Auto, Charge: 2, Expires: time.Unix(1e9, 0).UTC(), State: compare.Breached,
	}
}

// journal is the actuator's: what was sent, in order.
type journal struct {
	sent map[gate.Key]int
}

// TestClaimsOfReplicas: over any interleaving of two appenders with stale
// positions, at most one effect is sent for each key, and never two at once on
// one service or target (promise 5).
func TestClaimsOfReplicas(t *testing.T) {
	won := 0
	rapid.Check(t, func(rt *rapid.T) {
		store := openLedger(t, newLedger(t))
		defer func() { _ = store.Close() }()
		replicas := []*replica{newReplica(store), newReplica(store)}
		for _, r := range replicas {
			if err := r.catchUp(); err != nil {
				rt.Fatal(err)
			}
		}
		j := journal{sent: map[gate.Key]int{}}
		pick := rapid.SampledFrom(replicas)
		rt.Repeat(map[string]func(*rapid.T){
			"look":   func(rt *rapid.T) { lost(rt, pick.Draw(rt, "replica").catchUp()) },
			"decide": func(rt *rapid.T) { pick.Draw(rt, "replica").decide(rt) },
			"claim":  func(rt *rapid.T) { pick.Draw(rt, "replica").claimAndSend(rt, j) },
			"finish": func(rt *rapid.T) { pick.Draw(rt, "replica").finish(rt) },
			"":       func(rt *rapid.T) { singleEffects(rt, store, j) },
		})
		won += len(j.sent)
	})
	// Otherwise nothing was tried.
	if won == 0 {
		t.Error("no claim was ever won")
	}
}

func (r *replica) decide(rt *rapid.T) {
	r.service = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "service")
	target := rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "target")
	r.claim = claimOn(r.service, target, rapid.Int64Range(1, 4).Draw(rt, "window"))
	r.decided = r.state.Head
}

// claimAndSend does what a pass does: claim, start, send.
func (r *replica) claimAndSend(rt *rapid.T, j journal) {
	if r.service == "" {
		return
	}
	err := r.append(func(s *ledger.State) (ledger.Draft, error) {
		return ledger.ClaimDraft(s, r.service, r.claim, r.decided)
	})
	if lost(rt, err) {
		return
	}
	err = r.append(func(s *ledger.State) (ledger.Draft, error) { return ledger.StartDraft(s, r.claim.Key) })
	if !lost(rt, err) {
		j.sent[r.claim.Key]++
	}
}

// finish ends whatever is in flight, as the replica sees it.
func (r *replica) finish(rt *rapid.T) {
	for _, key := range r.state.Unsettled {
		err := r.append(func(s *ledger.State) (ledger.Draft, error) {
			return ledger.ReceiptDraft(s, key, execute.Receipt{Effect: execute.NoOp, At: time.Unix(1, 0)})
		})
		lost(rt, err)
		return
	}
}

// lost reports whether a transition was lost to another replica; any other
// error is a failure.
func lost(rt *rapid.T, err error) bool {
	if err != nil && !errors.Is(err, ledger.ErrLost) && !errors.Is(err, ledger.ErrExists) {
		rt.Fatal(err)
	}
	return err != nil
}

func singleEffects(rt *rapid.T, store ledger.Store, j journal) {
	for key, n := range j.sent {
		if n > 1 {
			rt.Fatalf("%s was sent %d times", key, n)
		}
	}
	es, err := store.Read(context.Background(), 0, 10000)
	if err != nil {
		rt.Fatal(err)
	}
	s, err := ledger.Fold(es)
	if err != nil {
		rt.Fatal(err)
	}
	if len(s.Skipped) > 0 {
		rt.Fatalf("skipped %v", s.Skipped)
	}
	var services, targets []string
	for _, key := range s.Unsettled {
		services, targets = append(services, s.Effects[key].Service), append(targets, s.Effects[key].Claim.Target)
	}
	slices.Sort(services)
	slices.Sort(targets)
	if len(slices.Compact(services)) != len(s.Unsettled) || len(slices.Compact(targets)) != len(s.Unsettled) {
		rt.Fatalf("two in flight on one service or target: %v", s.Unsettled)
	}
}

// TestClaimRace has many appenders claim one key at once, from one position.
func TestClaimRace(t *testing.T) {
	store := openLedger(t, newLedger(t))
	defer func() { check(t, store.Close()) }()
	base := newReplica(store)
	check(t, base.catchUp())
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			r := &replica{store: store, state: base.state.Clone()}
			errs[i] = r.append(func(s *ledger.State) (ledger.Draft, error) {
				return ledger.ClaimDraft(s, "a", claimOn("a", "x", 1), base.state.Head)
			})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ledger.ErrExists):
			t.Errorf("a lost claim gave %v, want %v", err, ledger.ErrExists)
		}
	}
	if won != 1 {
		t.Errorf("%d claims of one key were won, want 1", won)
	}
}

// TestUniqueBacksTheClaim: even an appender that checks nothing cannot claim a
// key twice.
func TestUniqueBacksTheClaim(t *testing.T) {
	store := openLedger(t, newLedger(t))
	defer func() { check(t, store.Close()) }()
	careless := func() error {
		c := claimOn("a", "x", 1)
		_, err := store.Append(t.Context(), ledger.Position{}, func([]ledger.Entry) ([]ledger.Draft, error) {
			return []ledger.Draft{{Kind: ledger.KindClaim, Service: "a", Unique: "claim/" + string(c.Key), Body: c}}, nil
		})
		return err
	}
	check(t, careless())
	if err := careless(); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a second claim gave %v, want %v", err, ledger.ErrExists)
	}
}

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The balances of these tests. Costs are multiples of a quarter, so that sums are
// exact in any order.
var (
	ownPolicy   = budget.Policy{Period: 28 * 24 * time.Hour, Capacity: 3}
	fleetPolicy = budget.Policy{Period: 7 * 24 * time.Hour, Capacity: 10}
	paidCosts   = spec.Costs{NoChange: 1, Worsened: 2.5, Unknown: 0.75}
	paidFor     = []string{"scale", "restart"}
	payers      = []string{"a", "b"}
)

// purse adds up by itself what promise 4 says of the same history: it sees what
// happened and asks neither the ledger nor the budget.
type purse struct {
	paid   map[gate.Key]*payment
	resets []fresh
}

type payment struct {
	service, action string
	at              time.Time
	auto, undo      bool
	owes            float64
}

type fresh struct {
	service, action string
	at, until       time.Time
}

// claimed: "A claim by verdict auto charges the dearest outcome"; "Approved
// actions are … charged nothing"; an undo's "charge is appended with its
// outcome".
func (p *purse) claimed(key gate.Key, service, action string, at time.Time, auto, undo bool) {
	pay := &payment{service: service, action: action, at: at, auto: auto, undo: undo}
	if auto && !undo {
		pay.owes = 2.5
	}
	p.paid[key] = pay
}

// became: "no-op, void, not-landed: 0", and "failed, not-now and no-op cost
// nothing". In doubt and unknown "the charge stands".
func (p *purse) became(key gate.Key, e execute.Effect) {
	switch e {
	case execute.Void, execute.NoOp, execute.NotLanded, execute.Failed, execute.NotNow:
		p.paid[key].owes = 0
	}
}

// judged: "the measured outcome then replaces it by its own cost (recovered,
// improved … 0)"; recovering already costs 0, worsened and unknown are never free; an undo is
// charged "only when that is Worsened".
func (p *purse) judged(key gate.Key, o compare.Outcome, recovering bool) {
	pay := p.paid[key]
	pay.owes = map[compare.Outcome]float64{
		compare.OutcomeNoChange: 1, compare.OutcomeWorsened: 2.5, compare.OutcomeUnknown: 0.75,
	}[o]
	free := recovering && o == compare.OutcomeNoChange || pay.undo && o != compare.OutcomeWorsened
	if !pay.auto || free {
		pay.owes = 0
	}
}

// left: "Charges leave only by ageing out or by a named person's reset", which
// has an expiry: then what it forgave counts again. service "" is the fleet.
func (p *purse) left(service, action string, policy budget.Policy, now time.Time) float64 {
	left := policy.Capacity
	for _, pay := range p.paid {
		mine := service == "" || pay.service == service && pay.action == action
		if !mine || !now.Before(pay.at.Add(policy.Period)) {
			continue
		}
		forgiven := slices.ContainsFunc(p.resets, func(r fresh) bool {
			return r.service == service && r.action == action && pay.at.Before(r.at) && (r.until.IsZero() || now.Before(r.until))
		})
		if !forgiven {
			left -= pay.owes
		}
	}
	return left
}

// books are one history, folded in each of the ways in which the product does.
type books struct {
	*rapid.T

	now time.Time
	// pass are the times that may go by between two entries.
	pass    []time.Duration
	chain   memory
	live    *ledger.State
	history *ledger.State
	// restored went on from the bytes of a checkpoint, replayed from a fold of
	// the chain's beginning after a restart.
	restored, replayed []*ledger.State
	purse              purse
	checkpoints        int
}

func openBooks(rt *rapid.T, pass ...time.Duration) *books {
	b := &books{T: rt, now: start, pass: pass, live: ledger.NewState(), history: ledger.NewHistory()}
	b.purse.paid = map[gate.Key]*payment{}
	b.write(ledger.Draft{Kind: ledger.KindInit, Body: ledger.Init{Version: ledger.Version, By: "os:test"}}, nil)
	return b
}

// write appends what is legal, and reports whether it was.
func (b *books) write(d ledger.Draft, err error) bool {
	if errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrExists) {
		return false
	}
	if err != nil {
		b.Fatal(err)
	}
	e, err := ledger.Link(b.live.Head, b.now, d)
	if err != nil {
		b.Fatal(err)
	}
	b.chain.keepBlobs(d)
	b.chain.entries = append(b.chain.entries, e)
	for _, s := range slices.Concat([]*ledger.State{b.live, b.history}, b.restored, b.replayed) {
		if err := s.Apply(e); err != nil {
			b.Fatal(err)
		}
	}
	return true
}

// step lets time pass and does one legal thing.
func (b *books) step() {
	b.now = b.now.Add(rapid.SampledFrom(b.pass).Draw(b.T, "pass"))
	service := rapid.SampledFrom(payers).Draw(b.T, "service")
	if n := rapid.IntRange(0, 19).Draw(b.T, "thing"); n == 0 {
		b.reset(service)
		return
	}
	switch under, _ := b.live.InFlight(service, ""); {
	case under == nil:
		b.claim(service)
	case under.Effect == execute.Claimed:
		b.begin(under.Claim.Key)
	case under.Effect.Judged():
		b.judge(under.Claim.Key)
	case under.Effect == execute.Started && rapid.Bool().Draw(b.T, "receipt"):
		b.receive(under.Claim.Key)
	default:
		b.settle(under.Claim.Key)
	}
}

func (b *books) claim(service string) {
	key := gate.KeyOf(service, gate.WindowAt(b.now, 10*time.Minute))
	action := rapid.SampledFrom(paidFor).Draw(b.T, "action")
	verdict := rapid.SampledFrom([]gate.Verdict{gate.Auto, gate.Auto, gate.Auto, gate.Approval}).Draw(b.T, "verdict")
	c := claimOf(key, func(c *ledger.Claim) {
		c.Target, c.Costs, c.Verdict, c.Expires = "target of "+service, paidCosts, verdict, b.now.Add(30*time.Second)
		c.Action.Name = action
		c.Undo = rapid.IntRange(0, 4).Draw(b.T, "undo") == 0
		c.Charge = 0
		if verdict == gate.Auto {
			c.Charge = paidCosts.Dearest()
		}
	})
	if b.write(ledger.ClaimDraft(b.live, service, c, b.live.Head)) {
		b.purse.claimed(key, service, action, b.now, verdict == gate.Auto, c.Undo)
	}
}

func (b *books) begin(key gate.Key) {
	if rapid.IntRange(0, 4).Draw(b.T, "begin") > 0 {
		b.write(ledger.StartDraft(b.live, key))
		return
	}
	if b.write(ledger.VoidDraft(b.live, key, "expired-permit")) {
		b.purse.became(key, execute.Void)
	}
}

func (b *books) receive(key gate.Key) {
	e := rapid.SampledFrom([]execute.Effect{
		execute.Applied, execute.Applied, execute.Applied, execute.AppliedWithError,
		execute.NoOp, execute.Failed, execute.NotNow, execute.InDoubt,
	}).Draw(b.T, "receipt")
	if b.write(ledger.ReceiptDraft(b.live, key, execute.Receipt{Effect: e, At: b.now})) {
		b.purse.became(key, e)
	}
}

func (b *books) settle(key gate.Key) {
	e := rapid.SampledFrom([]execute.Effect{
		execute.Landed, execute.NotLanded, execute.NoOp, execute.Failed, execute.NotNow, execute.Unknown,
	}).Draw(b.T, "settled")
	by := rapid.SampledFrom([]string{ledger.SettledByObservation, "os:alice"}).Draw(b.T, "by")
	if b.write(ledger.SettleDraft(b.live, ledger.Settled{Key: key, Effect: e, By: by, Reason: "seen"})) {
		b.purse.became(key, e)
	}
}

func (b *books) judge(key gate.Key) {
	j := compare.Judgement{Decided: true, Outcome: rapid.SampledFrom([]compare.Outcome{
		compare.OutcomeRecovered, compare.OutcomeImproved, compare.OutcomeNoChange, compare.OutcomeWorsened, compare.OutcomeUnknown,
	}).Draw(b.T, "outcome")}
	j.Recovering = j.Outcome != compare.OutcomeUnknown && rapid.IntRange(0, 3).Draw(b.T, "recovering") == 0
	cost := 0.0
	if b.live.Effects[key].Claim.Verdict == gate.Auto {
		cost = budget.Cost(j.Outcome, j.Recovering, paidCosts)
	}
	if b.write(ledger.OutcomeDraft(b.live, ledger.Outcome{Key: key, Judgement: j, Cost: cost})) {
		b.purse.judged(key, j.Outcome, j.Recovering)
	}
}

func (b *books) reset(service string) {
	r := fresh{service: service, action: rapid.SampledFrom(paidFor).Draw(b.T, "action"), at: b.now}
	if rapid.IntRange(0, 2).Draw(b.T, "fleet") == 0 {
		r.service, r.action = "", ""
	}
	if days := rapid.IntRange(0, 20).Draw(b.T, "until"); days > 0 {
		r.until = b.now.Add(time.Duration(days) * 24 * time.Hour)
	}
	d := ledger.Draft{Kind: ledger.KindReset, Service: r.service, Body: ledger.Reset{Action: r.action, By: "os:alice", Reason: "fixed", Until: r.until}}
	if b.write(d, nil) {
		b.purse.resets = append(b.purse.resets, r)
	}
}

// checkpoint writes one, and goes on from its bytes too, beside those that went
// on from an earlier one.
func (b *books) checkpoint() {
	if !b.write(ledger.CheckpointDraft(b.live)) {
		return
	}
	s, err := ledger.Load(context.Background(), &b.chain)
	if err != nil || s.Head.Seq != uint64(len(b.chain.entries)-1) {
		b.Fatalf("the checkpoint gives entry %d, %v", s.Head.Seq, err)
	}
	if err := s.Apply(b.chain.entries[s.Head.Seq]); err != nil {
		b.Fatal(err)
	}
	b.restored = append(b.restored[max(0, len(b.restored)-1):], s)
	b.checkpoints++
}

// restart folds all that there is, as a process that lost its memory does.
func (b *books) restart() {
	b.replayed = append(b.replayed[max(0, len(b.replayed)-1):], folded(b.T, b.chain.entries))
}

// balanced compares every balance, now and when some of it has aged out.
func (b *books) balanced(more ...*ledger.State) {
	states := slices.Concat([]*ledger.State{b.live, b.history}, b.restored, b.replayed, more)
	later := b.now.Add(time.Duration(rapid.IntRange(0, 30*24).Draw(b.T, "later")) * time.Hour)
	charges := make([][]budget.Charge, len(states))
	for i, s := range states {
		charges[i] = s.Charges()
	}
	for _, now := range []time.Time{b.now, later} {
		fleet := b.purse.left("", "", fleetPolicy, now)
		for _, service := range payers {
			for _, action := range paidFor {
				own := b.purse.left(service, action, ownPolicy, now)
				for i, s := range states {
					got := budget.Of(service, action, ownPolicy, fleetPolicy, charges[i], s.Resets, now)
					if got.Remaining != own || got.GlobalRemaining != fleet {
						b.Fatalf("after entry %d, at %s, %s: %s/%s has %g and the fleet %g left, want %g and %g",
							b.live.Head.Seq, now, b.nameOf(i), service, action, got.Remaining, got.GlobalRemaining, own, fleet)
					}
				}
			}
		}
	}
}

func (b *books) nameOf(i int) string {
	names := []string{"as it was folded live", "in the history that forgets nothing"}
	for range b.restored {
		names = append(names, "restored from a checkpoint")
	}
	for range b.replayed {
		names = append(names, "replayed after a restart")
	}
	if i < len(names) {
		return names[i]
	}
	return "folded from the beginning"
}

// TestBalanceIsWhatWasPaid: after every entry of any legal history the balances
// are what promise 4 says, however the state came about.
func TestBalanceIsWhatWasPaid(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		b := openBooks(rt, 0, 0, time.Minute, 11*time.Minute, 3*time.Hour, 30*time.Hour, 9*24*time.Hour)
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 19).Draw(rt, "process") {
			case 0:
				b.checkpoint()
			case 1:
				b.restart()
			}
			b.step()
			b.balanced(folded(rt, b.chain.entries))
			for _, e := range b.live.Effects {
				seen[fmt.Sprint(e.Effect)], seen[fmt.Sprint(e.Outcome)] = true, true
			}
		}
		b.noSkips()
		seen["checkpoint"] = seen["checkpoint"] || b.checkpoints > 0
	})
	for _, want := range []string{
		"void", "applied", "applied-with-error", "no-op", "failed", "not-now", "in-doubt", "landed", "not-landed", "unknown",
		"pending", "recovered", "improved", "no-change", "worsened", "checkpoint",
	} {
		if !seen[want] {
			t.Errorf("no history had %s: nothing was tried", want)
		}
	}
}

// TestBalanceOfALongHistory: nor does it matter how much of the past a state has
// forgotten.
func TestBalanceOfALongHistory(t *testing.T) {
	checks(t, "4")
	forgotten, counting := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		// So that much is forgotten which still counts.
		b := openBooks(rt, 0, 11*time.Minute, 11*time.Minute, time.Hour/2, 3*time.Hour)
		for n := range 1200 {
			switch n % 170 {
			case 100:
				b.checkpoint()
			case 160:
				b.restart()
			}
			b.step()
			b.balanced()
		}
		b.balanced(folded(rt, b.chain.entries))
		b.noSkips()
		forgotten += len(b.history.Effects) - len(b.live.Effects)
		for _, c := range b.live.Charged {
			if b.now.Before(c.At.Add(ownPolicy.Period)) {
				counting++
			}
		}
	})
	if forgotten < 100 || counting < 10 {
		t.Errorf("%d effects were forgotten, of which %d charges count: nothing was tried", forgotten, counting)
	}
}

// noSkips: a legal history holds nothing that contradicts.
func (b *books) noSkips() {
	for _, s := range b.history.Skipped {
		b.Fatalf("entry %d (%s) was skipped: %s", s.Seq, s.Kind, s.Why)
	}
}

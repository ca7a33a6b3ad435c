package budget_test

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

var (
	own    = budget.Policy{Period: 28 * day, Capacity: 3}
	global = budget.Policy{Period: 7 * day, Capacity: 10}
)

func charge(service, action string, before time.Duration, cost float64) budget.Charge {
	return budget.Charge{Service: service, Action: action, At: now.Add(-before), Cost: cost, Outcome: compare.OutcomePending}
}

func TestOf(t *testing.T) {
	type want struct{ Remaining, Global float64 }
	list := func(cs ...budget.Charge) []budget.Charge { return cs }
	reset := func(service, action string, before time.Duration) []budget.Reset {
		return []budget.Reset{{Service: service, Action: action, At: now.Add(-before), By: "os:alice"}}
	}
	cases := map[string]struct {
		reason  string
		own     budget.Policy
		global  budget.Policy
		charges []budget.Charge
		resets  []budget.Reset
		want    want
	}{
		"nothing charged":      {"all is left", own, global, nil, nil, want{3, 10}},
		"provisional":          {"a claim counts in full until its outcome replaces it", own, global, list(charge("shop", "restart", time.Hour, 2)), nil, want{1, 8}},
		"another action":       {"each service x action has its own", own, global, list(charge("shop", "scale", time.Hour, 2)), nil, want{3, 8}},
		"another service":      {"each service x action has its own", own, global, list(charge("web", "restart", time.Hour, 2)), nil, want{3, 8}},
		"aged out of one":      {"each budget has its own period", own, global, list(charge("shop", "restart", 8*day, 2)), nil, want{1, 10}},
		"to the moment":        {"a charge leaves one period after its claim", own, global, list(charge("shop", "restart", 28*day, 2)), nil, want{3, 10}},
		"a moment before":      {"and not earlier", own, global, list(charge("shop", "restart", 28*day-time.Nanosecond, 2)), nil, want{1, 10}},
		"own reset":            {"a named person's reset frees this action and not the fleet", own, global, list(charge("shop", "restart", time.Hour, 2)), reset("shop", "restart", time.Minute), want{3, 8}},
		"global reset":         {"and the fleet's reset not the action", own, global, list(charge("shop", "restart", time.Hour, 2)), reset("", "", time.Minute), want{1, 10}},
		"another reset":        {"a reset is for one action", own, global, list(charge("shop", "restart", time.Hour, 2)), reset("shop", "scale", time.Minute), want{1, 8}},
		"charge after reset":   {"only charges before it are forgotten", own, global, list(charge("shop", "restart", time.Minute, 2)), reset("shop", "restart", time.Hour), want{1, 8}},
		"charge at reset":      {"only charges before it are forgotten", own, global, list(charge("shop", "restart", time.Hour, 2)), reset("shop", "restart", time.Hour), want{1, 8}},
		"reset of the future":  {"is not yet", own, global, list(charge("shop", "restart", time.Hour, 2)), reset("shop", "restart", -time.Minute), want{1, 8}},
		"charge of the future": {"counts: a clock that ran ahead makes no room", own, global, list(charge("shop", "restart", -time.Hour, 2)), nil, want{1, 8}},
		"overdrawn":            {"is shown as it is: an undo is charged whatever is left", own, global, list(charge("shop", "restart", time.Hour, 2), charge("shop", "restart", time.Hour, 2)), nil, want{-1, 6}},
		"NaN capacity":         {"no amount allows nothing", budget.Policy{Period: day, Capacity: math.NaN()}, global, nil, nil, want{0, 10}},
		"infinite capacity":    {"no amount allows nothing", own, budget.Policy{Period: day, Capacity: math.Inf(1)}, nil, nil, want{3, 0}},
		"negative capacity":    {"no amount allows nothing", budget.Policy{Period: day, Capacity: -3}, global, nil, nil, want{0, 10}},
		"no period":            {"without a period nothing ages out", budget.Policy{Capacity: 3}, global, list(charge("shop", "restart", 1000*day, 2)), nil, want{1, 10}},
		"NaN cost":             {"takes the whole budget", own, global, list(charge("shop", "restart", time.Hour, math.NaN())), nil, want{0, 0}},
		"negative cost":        {"never makes room", own, global, list(charge("shop", "restart", time.Hour, -2)), nil, want{0, 0}},
		"infinite cost":        {"takes the whole budget, and stays a number", own, global, list(charge("shop", "restart", time.Hour, math.Inf(1))), nil, want{0, 0}},
		"free":                 {"recovered costs nothing", own, global, list(charge("shop", "restart", time.Hour, 0)), nil, want{3, 10}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := budget.Of("shop", "restart", tc.own, tc.global, tc.charges, tc.resets, now)
			if diff := cmp.Diff(tc.want, want{b.Remaining, b.GlobalRemaining}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOfListsWhatCounts(t *testing.T) {
	old, young := charge("shop", "restart", 2*day, 1), charge("shop", "restart", day, 2)
	in := []budget.Charge{young, charge("shop", "restart", 40*day, 1), charge("web", "restart", day, 1), charge("shop", "restart", day, 0), old}
	b := budget.Of("shop", "restart", own, global, in, nil, now)
	if diff := cmp.Diff([]budget.Charge{old, young}, b.Charges); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if in[0] != young {
		t.Error("the caller's charges were moved")
	}
}

func TestAffords(t *testing.T) {
	cases := map[string]struct {
		reason  string
		balance budget.Balance
		cost    float64
		want    bool
	}{
		"room in both":       {"needs that much left in both", budget.Balance{Remaining: 2, GlobalRemaining: 2}, 2, true},
		"own too small":      {"needs that much left in both", budget.Balance{Remaining: 1, GlobalRemaining: 9}, 2, false},
		"global too small":   {"needs that much left in both", budget.Balance{Remaining: 9, GlobalRemaining: 1}, 2, false},
		"empty, free":        {"an empty balance turns auto into approval", budget.Balance{GlobalRemaining: 9}, 0, false},
		"global empty, free": {"an empty balance turns auto into approval", budget.Balance{Remaining: 9}, 0, false},
		"free":               {"nothing is needed", budget.Balance{Remaining: 1, GlobalRemaining: 1}, 0, true},
		"NaN":                {"no amount is never afforded", budget.Balance{Remaining: 9, GlobalRemaining: 9}, math.NaN(), false},
		"negative":           {"no amount is never afforded", budget.Balance{Remaining: 9, GlobalRemaining: 9}, -1, false},
		"NaN balance":        {"affords nothing", budget.Balance{Remaining: math.NaN(), GlobalRemaining: 9}, 1, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.balance.Affords(tc.cost); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestCost(t *testing.T) {
	costs := spec.Costs{NoChange: 1, Worsened: 2, Unknown: 1.5}
	cases := map[string]struct {
		reason     string
		outcome    compare.Outcome
		recovering bool
		want       float64
	}{
		"recovered":               {"0", compare.OutcomeRecovered, false, 0},
		"improved":                {"0", compare.OutcomeImproved, false, 0},
		"no effect":               {"no-op, void and not-landed: 0", compare.OutcomeNone, false, 0},
		"no change":               {"its own cost", compare.OutcomeNoChange, false, 1},
		"worsened":                {"its own cost", compare.OutcomeWorsened, false, 2},
		"unknown":                 {"its own cost", compare.OutcomeUnknown, false, 1.5},
		"pending":                 {"the dearest outcome until measured", compare.OutcomePending, false, 2},
		"pending and recovering":  {"the dearest outcome until measured", compare.OutcomePending, true, 2},
		"no change, recovering":   {"recovering already: 0", compare.OutcomeNoChange, true, 0},
		"worsened, recovering":    {"harm is never free", compare.OutcomeWorsened, true, 2},
		"unknown, recovering":     {"unknown is never free", compare.OutcomeUnknown, true, 1.5},
		"a word nobody knows":     {"the dearest", "splendid", false, 2},
		"a word nobody knows (2)": {"the dearest", "splendid", true, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := budget.Cost(tc.outcome, tc.recovering, costs); got != tc.want {
				t.Errorf("%s: got %g, want %g", tc.reason, got, tc.want)
			}
		})
	}
}

func drawCharge(t *rapid.T) budget.Charge {
	return budget.Charge{
		Service:  rapid.SampledFrom([]string{"shop", "web"}).Draw(t, "service"),
		Action:   rapid.SampledFrom([]string{"restart", "scale"}).Draw(t, "action"),
		Decision: rapid.StringMatching(`[a-c]`).Draw(t, "decision"),
		At:       now.Add(-time.Duration(rapid.IntRange(-100, 1000).Draw(t, "hours")) * time.Hour),
		Cost: rapid.OneOf(rapid.Float64Range(0, 5), rapid.SampledFrom([]float64{
			0.1, 0.2, 0.3, math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300,
		})).Draw(t, "cost"),
	}
}

func drawResets(t *rapid.T) []budget.Reset {
	var rs []budget.Reset
	for range rapid.IntRange(0, 2).Draw(t, "resets") {
		c := drawCharge(t)
		r := budget.Reset{Service: c.Service, Action: c.Action, At: c.At}
		if rapid.Bool().Draw(t, "global") {
			r.Service, r.Action = "", ""
		}
		rs = append(rs, r)
	}
	return rs
}

func TestOfProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		charges := rapid.SliceOfN(rapid.Custom(drawCharge), 0, 12).Draw(t, "charges")
		resets := drawResets(t)
		of := func(cs []budget.Charge, at time.Time) budget.Balance {
			return budget.Of("shop", "restart", own, global, cs, resets, at)
		}
		b := of(charges, now)
		for _, v := range []float64{b.Remaining, b.GlobalRemaining} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("balance %g is no number", v)
			}
		}
		if b.Remaining > b.Capacity || b.GlobalRemaining > b.GlobalCapacity {
			t.Fatalf("more is left than there is: %+v", b)
		}

		more := of(append(append([]budget.Charge(nil), charges...), drawCharge(t)), now)
		if more.Remaining > b.Remaining || more.GlobalRemaining > b.GlobalRemaining {
			t.Fatalf("a further charge raised the balance from %+v to %+v", b, more)
		}

		shuffled := append([]budget.Charge(nil), charges...)
		rand.New(rand.NewSource(int64(len(charges)))).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		if diff := cmp.Diff(b, of(shuffled, now)); diff != "" {
			t.Fatalf("the order of the charges matters:\n%s", diff)
		}

		later := of(charges, now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "later"))*time.Hour))
		if later.Remaining < b.Remaining || later.GlobalRemaining < b.GlobalRemaining {
			t.Fatalf("ageing lowered the balance from %+v to %+v", b, later)
		}
	})
}

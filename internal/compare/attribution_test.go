package compare_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func failing(id string, es ...edit) edit { return end(id, judgeWindow, 0, es...) }

// Only a neighbour that was Met at the claim can blame the action.
func TestEffectOnNeighbours(t *testing.T) {
	tr := func() compare.Trial {
		return trial(service("checkout", objective("a")), service("web", objective("n"), objective("m")), service("app", objective("x")))
	}
	cases := map[string]struct {
		reason string
		at     time.Duration
		edits  []edit
		want   compare.Outcome
		by     string
	}{
		"met and harmed":                {"it was well and is not", afterEnd, []edit{missed("a"), after("n", ratio(0.2))}, compare.OutcomeWorsened, "web/n"},
		"the second one harmed":         {"each neighbour counts", afterEnd, []edit{missed("a"), after("x", ratio(0.2))}, compare.OutcomeWorsened, "app/x"},
		"missed before, other harmed":   {"a service that missed before has its own trouble, and it may spread", holdEnd, []edit{missed("a"), failing("n", ratio(0.5)), after("m", ratio(0.5))}, compare.OutcomeRecovered, "checkout/a"},
		"one in trouble, another not":   {"the trouble of one neighbour excuses no harm to another", afterEnd, []edit{missed("a"), failing("n", ratio(0.5)), after("x", ratio(0.2))}, compare.OutcomeWorsened, "app/x"},
		"missed in the last fifth":      {"it was failing already when the action was claimed", holdEnd, []edit{missed("a"), end("n", lastPart, 0, ratio(0.5)), after("n", ratio(0.5))}, compare.OutcomeRecovered, "checkout/a"},
		"unseen beside, other harmed":   {"what was seen to be well counts", afterEnd, []edit{missed("a"), failing("n", reason(measure.NoData)), after("m", ratio(0.2))}, compare.OutcomeWorsened, "web/m"},
		"source failed, other harmed":   {"the source may yet say that it missed before", afterEnd, []edit{missed("a"), failing("n", reason(measure.SourceError)), after("m", ratio(0.2))}, compare.OutcomePending, ""},
		"source failed for good":        {"nobody can say that it missed before", deadline, []edit{missed("a"), failing("n", reason(measure.SourceError)), after("m", ratio(0.2))}, compare.OutcomeWorsened, "web/m"},
		"source failed, trouble beside": {"it was not met, whatever else", holdEnd, []edit{missed("a"), failing("n", reason(measure.SourceError)), failing("m", ratio(0.5)), after("m", ratio(0.9))}, compare.OutcomeRecovered, "checkout/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(tr(), tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || tc.by != "" && got.Objective != tc.by {
				t.Errorf("%s: got %s by %s, want %s by %s", tc.reason, got.Outcome, got.Objective, tc.want, tc.by)
			}
		})
	}
}

// TestNeighboursOnlyBlame: a neighbour never makes an outcome better, and one
// that missed before changes nothing at all.
func TestNeighboursOnlyBlame(t *testing.T) {
	rank := map[compare.Outcome]int{
		compare.OutcomeWorsened: 0, compare.OutcomeUnknown: 1, compare.OutcomeNoChange: 2, compare.OutcomeImproved: 3, compare.OutcomeRecovered: 4,
	}
	own := service("checkout", objective("a"), objective("b"))
	both := trial(own, service("web", objective("n"), objective("m")))
	rapid.Check(t, func(t *rapid.T) {
		at := time.Hour
		ms := draws(t, both, at)
		if rapid.Bool().Draw(t, "trouble") {
			for i := range ms {
				failing("n", ratio(0.5), events(1000), age(0))(&ms[i])
			}
		}
		set := measure.NewSet(ms)
		with := compare.Effect(both, set, limits, now.Add(at))
		alone := compare.Effect(trial(own), set, limits, now.Add(at))
		if rank[with.Outcome] > rank[alone.Outcome] {
			t.Fatalf("the neighbour turned %+v into %+v", alone, with)
		}
		n := set.Get(measure.ID{Service: "web", Objective: "n", Window: judgeWindow, At: now})
		if n.Known() && n.ErrorRatio > 0.1+1e-6 && n.ErrorRatio <= 1 && n.Total >= 50 && n.ID.At.Sub(n.SampleAt).Abs() < 90*time.Second && with != alone {
			t.Fatalf("a neighbour in trouble turned %+v into %+v", alone, with)
		}
	})
}

// What was recovering by itself earns nothing, and costs nothing unless it got
// worse; but one objective's recovery does not make free what the action left of another.
func TestRecoveringIsNoCredit(t *testing.T) {
	was := func(id string) edit { return end(id, judgeWindow, -judgeWindow, ratio(0.9)) }
	one := func() compare.Trial { return trial() }
	two := func() compare.Trial { return trial(service("checkout", objective("a"), objective("b"))) }
	cases := map[string]struct {
		reason     string
		trial      compare.Trial
		at         time.Duration
		edits      []edit
		want       compare.Outcome
		recovering bool
		earned     bool
	}{
		"recovered, earned":              {"it was not recovering", one(), holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, false, true},
		"improved, earned":               {"it was not recovering", one(), afterEnd, []edit{missed("a"), after("a", ratio(0.3))}, compare.OutcomeImproved, false, true},
		"recovered by itself":            {"half of the excess had gone before the claim", one(), holdEnd, []edit{missed("a"), was("a")}, compare.OutcomeRecovered, true, false},
		"improved by itself":             {"half of the excess had gone before the claim", one(), afterEnd, []edit{missed("a"), was("a"), after("a", ratio(0.3))}, compare.OutcomeImproved, true, false},
		"worsened while recovering":      {"no credit, and harm", one(), afterEnd, []edit{missed("a"), was("a"), after("a", ratio(1))}, compare.OutcomeWorsened, true, false},
		"relapsed while recovering":      {"free", one(), holdEnd, []edit{missed("a"), was("a"), end("a", judgeWindow, holdMid, ratio(0.3))}, compare.OutcomeNoChange, true, false},
		"unknown while recovering":       {"unknown is never free", one(), deadline, []edit{missed("a"), was("a"), after("a", reason(measure.NoData))}, compare.OutcomeUnknown, false, false},
		"not decided":                    {"nothing is earned yet", one(), afterEnd, []edit{missed("a")}, compare.OutcomePending, false, false},
		"both recovering":                {"no credit", two(), holdEnd, []edit{missed("a"), missed("b"), was("a"), was("b")}, compare.OutcomeRecovered, true, false},
		"one recovering, one helped":     {"it helped the other", two(), holdEnd, []edit{missed("a"), missed("b"), was("a")}, compare.OutcomeRecovered, false, true},
		"one recovering, other the same": {"the service was not recovering: what did not help costs", two(), holdEnd, []edit{missed("a"), missed("b"), was("a"), after("b", ratio(0.5))}, compare.OutcomeNoChange, false, false},
		"one worse, other the same":      {"harm to what was recovering makes nothing free", two(), holdEnd, []edit{missed("a"), missed("b"), was("a"), after("a", ratio(1)), after("b", ratio(0.5))}, compare.OutcomeWorsened, false, false},
		"one worse, other still open":    {"what it costs hangs on the other", two(), afterEnd, []edit{missed("a"), missed("b"), was("a"), after("a", ratio(1))}, compare.OutcomePending, false, false},
		"one worse, other helped":        {"the objective that got worse was recovering", two(), holdEnd, []edit{missed("a"), missed("b"), was("a"), after("a", ratio(1))}, compare.OutcomeWorsened, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(tc.trial, tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || got.Recovering != tc.recovering || got.Earned() != tc.earned {
				t.Errorf("%s: got %+v, earned %t; want %s, recovering %t, earned %t",
					tc.reason, got, got.Earned(), tc.want, tc.recovering, tc.earned)
			}
		})
	}
}

// Lookback: no window is judged that still holds a minute from before the
// effect, however its numbers come about.
func TestNoWindowReachesBackBeforeTheEffect(t *testing.T) {
	recordedRatio := objective("a")
	recordedRatio.MinEvents = 0
	recordedRatio.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "slo:sli_error:ratio_rate{{.window}}", Recorded: true}}
	seen := objective("a")
	seen.MinEvents, seen.Others = 0, []spec.Indicator{recordedRatio.Indicator}
	sliced := objective("a")
	sliced.Slice = 2 * time.Minute
	offset := objective("a")
	offset.Indicator.Total = &spec.Query{Expr: `sum(increase(http_requests_total[{{.window}}] offset 3m))`}
	long := objective("a")
	long.JudgeWindow = 24 * time.Hour
	cases := map[string]struct {
		reason string
		o      spec.Objective
		// reach is how far before its start the numbers of a window may reach.
		reach time.Duration
	}{
		"a rate":            {"counts between the samples inside its window", objective("a"), 0},
		"time slices":       {"the first began a slice earlier", sliced, 2 * time.Minute},
		"an offset":         {"looks at an earlier window", offset, 3 * time.Minute},
		"a recorded ratio":  {"is of the window that ended when it was recorded", recordedRatio, 90 * time.Second},
		"one of two":        {"each vantage point must be past the effect", seen, 90 * time.Second},
		"a day of recorded": {"the first count began five minutes earlier", long, 5 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := trial(service("checkout", tc.o))
			settled := tr.AppliedAt.Add(tr.Settle)
			first := settled.Add(tc.o.JudgeWindow + tc.reach)
			if qs := compare.AfterQueries(tr, first.Add(-time.Millisecond)); len(qs) != 0 {
				t.Errorf("%s: asked at %s, before %s", tc.reason, qs[0].ID.At, first)
			}
			for _, q := range compare.AfterQueries(tr, first.Add(hour)) {
				if begun := q.ID.At.Add(-q.ID.Window - tc.reach); begun.Before(settled) {
					t.Errorf("%s: a window ending at %s holds time since %s, before %s", tc.reason, q.ID.At, begun, settled)
				}
			}
			if got := judged(tr, first.Sub(now)-time.Millisecond, missed("a")); got.Decided || !got.Next.Equal(first) {
				t.Errorf("%s: got %+v, want to be asked again at %s", tc.reason, got, first)
			}
		})
	}
}

// A ratio that was recorded before the effect could show is no reading of what
// came after it, however fresh the source calls it.
func TestRecordedRatioFromBeforeTheEffect(t *testing.T) {
	o := objective("a")
	o.MinEvents = 0
	o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "slo:sli_error:ratio_rate{{.window}}", Recorded: true, Source: "slow"}}
	tr := trial(service("checkout", o))
	tr.Settle = 0
	first := tr.AppliedAt.Add(judgeWindow + 90*time.Second).Sub(now)
	cases := map[string]struct {
		age  time.Duration
		want compare.Outcome
	}{
		"recorded after":  {89 * time.Second, compare.OutcomeNoChange},
		"recorded before": {91 * time.Second, compare.OutcomePending},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(tr, first, missed("a"), end("a", judgeWindow, first, ratio(0.5), age(tc.age)))
			if got.Outcome != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

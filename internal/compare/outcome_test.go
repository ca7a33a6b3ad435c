package compare_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The trial of these tests: claimed at now, applied a minute later, settled
// after four. So after ends at +10m, the hold runs to +20m, with one reading
// between, and an unknown after is final at +20m.
const (
	afterEnd = 10 * time.Minute
	holdMid  = 15 * time.Minute
	holdEnd  = 20 * time.Minute
	deadline = 20 * time.Minute
	lastPart = time.Minute
)

func trial(judged ...spec.Service) compare.Trial {
	if len(judged) == 0 {
		judged = []spec.Service{service("checkout", objective("a"))}
	}
	return compare.Trial{
		Service: "checkout", ClaimedAt: now, AppliedAt: now.Add(time.Minute), Settle: 4 * time.Minute,
		Judged: judged, WorstScrape: 15 * time.Second,
	}
}

// judged asks what may be asked at +at, answers it with the edits and judges.
func judged(t compare.Trial, at time.Duration, edits ...edit) compare.Judgement {
	qs := append(compare.BeforeQueries(t), compare.AfterQueries(t, now.Add(at))...)
	return compare.Effect(t, measure.NewSet(answer(qs, edits...)), limits, now.Add(at))
}

// end applies edits to the window of one objective that ends at +at.
func end(id string, window, at time.Duration, es ...edit) edit {
	return func(m *measure.Measurement) {
		if m.ID.At.Equal(now.Add(at)) {
			on(id, window, es...)(m)
		}
	}
}

// missed is a before with an error ratio of 0.5, and an earlier window alike.
func missed(id string) edit {
	return func(m *measure.Measurement) {
		end(id, judgeWindow, 0, ratio(0.5))(m)
		end(id, judgeWindow, -judgeWindow, ratio(0.5))(m)
	}
}

func after(id string, es ...edit) edit { return end(id, judgeWindow, afterEnd, es...) }

func TestEffect(t *testing.T) {
	a := "a"
	noFloor := objective(a)
	noFloor.MinEvents = 0
	cases := map[string]struct {
		reason     string
		trial      compare.Trial
		at         time.Duration
		edits      []edit
		want       compare.Outcome
		recovering bool
	}{
		"before the window has passed":  {reason: "the first judge window wholly after applied + settle", at: afterEnd - time.Millisecond, edits: []edit{missed(a)}, want: compare.OutcomePending},
		"within target, hold runs":      {reason: "within target must hold for holdFor", at: holdEnd - time.Millisecond, edits: []edit{missed(a)}, want: compare.OutcomePending},
		"held":                          {reason: "after within target and so for holdFor", at: holdEnd, edits: []edit{missed(a)}, want: compare.OutcomeRecovered},
		"relapse in between":            {reason: "a relapse is no change", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, holdMid, ratio(0.3))}, want: compare.OutcomeNoChange},
		"relapse at the end":            {reason: "a relapse is no change", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, holdEnd, ratio(0.3))}, want: compare.OutcomeNoChange},
		"relapse is told at once":       {reason: "what is certain needs no more waiting", at: holdMid, edits: []edit{missed(a), end(a, judgeWindow, holdMid, ratio(0.3))}, want: compare.OutcomeNoChange},
		"relapse that is worse":         {reason: "a relapse is no change, however bad", at: holdMid, edits: []edit{missed(a), end(a, judgeWindow, holdMid, ratio(1))}, want: compare.OutcomeNoChange},
		"hold unknown, time left":       {reason: "unknown is not decided while time is left", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, holdMid, reason(measure.NoData))}, want: compare.OutcomePending},
		"hold unknown for long":         {reason: "unknown never credits", at: holdMid + 10*time.Minute, edits: []edit{missed(a), end(a, judgeWindow, holdMid, reason(measure.NoData))}, want: compare.OutcomeUnknown},
		"hold unknown, later relapse":   {reason: "a relapse is certain, whatever else is not known", at: holdMid + 10*time.Minute, edits: []edit{missed(a), end(a, judgeWindow, holdMid, reason(measure.NoData)), end(a, judgeWindow, holdEnd, ratio(0.3))}, want: compare.OutcomeNoChange},
		"half the excess":               {reason: "excess down by half or more: 0.4 to 0.2", at: afterEnd, edits: []edit{missed(a), after(a, ratio(0.3))}, want: compare.OutcomeImproved},
		"less than half":                {reason: "else no change", at: afterEnd, edits: []edit{missed(a), after(a, ratio(0.31))}, want: compare.OutcomeNoChange},
		"up by less than a fifth":       {reason: "else no change", at: afterEnd, edits: []edit{missed(a), after(a, ratio(0.57))}, want: compare.OutcomeNoChange},
		"up by a fifth":                 {reason: "excess up by a fifth or more: 0.4 to 0.48", at: afterEnd, edits: []edit{missed(a), after(a, ratio(0.58))}, want: compare.OutcomeWorsened},
		"after unknown, time left":      {reason: "unknown is not decided while time is left", at: deadline - time.Millisecond, edits: []edit{missed(a), after(a, reason(measure.NoData))}, want: compare.OutcomePending},
		"after unknown for long":        {reason: "nothing known at applied + settle + judgeWindow + unknownFor", at: deadline, edits: []edit{missed(a), after(a, reason(measure.NoData))}, want: compare.OutcomeUnknown},
		"after has low traffic":         {reason: "too few events are unknown", at: deadline, edits: []edit{missed(a), after(a, events(49))}, want: compare.OutcomeUnknown},
		"after is stale":                {reason: "a sample older than the limit at the window's end is unknown", at: deadline, edits: []edit{missed(a), after(a, age(91*time.Second))}, want: compare.OutcomeUnknown},
		"before unknown, time left":     {reason: "ask again", at: afterEnd, edits: []edit{end(a, judgeWindow, 0, reason(measure.SourceError))}, want: compare.OutcomePending},
		"before unknown for long":       {reason: "without before nothing can be judged", at: deadline, edits: []edit{end(a, judgeWindow, 0, reason(measure.SourceError))}, want: compare.OutcomeUnknown},
		"last fifth is worse":           {reason: "before is the worse of both: 0.8 to 0.4 is half the excess", at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.8)), after(a, ratio(0.4))}, want: compare.OutcomeImproved},
		"last fifth is better":          {reason: "before is the worse of both", at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.2)), after(a, ratio(0.3))}, want: compare.OutcomeImproved},
		"last fifth has few events":     {reason: "the fifth counts only with minEvents", at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.8), events(49)), after(a, ratio(0.4))}, want: compare.OutcomeNoChange},
		"last fifth spans one scrape":   {reason: "the fifth counts only when it spans two scrapes", trial: func() compare.Trial { x := trial(); x.WorstScrape = 31 * time.Second; return x }(), at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.8)), after(a, ratio(0.4))}, want: compare.OutcomeNoChange},
		"scrape interval not known":     {reason: "Prometheus's default of a minute is assumed", trial: func() compare.Trial { x := trial(); x.WorstScrape = 0; return x }(), at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.8)), after(a, ratio(0.4))}, want: compare.OutcomeNoChange},
		"fifth could not be asked":      {reason: "ask again", at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, reason(measure.SourceError)), after(a, ratio(0.4))}, want: compare.OutcomePending},
		"fifth could never be asked":    {reason: "then the judge window alone", at: deadline, edits: []edit{missed(a), end(a, lastPart, 0, reason(measure.SourceError)), after(a, ratio(0.4))}, want: compare.OutcomeNoChange},
		"recovering already":            {reason: "before has at most half the excess of the window preceding it", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, ratio(0.9))}, want: compare.OutcomeRecovered, recovering: true},
		"not quite recovering":          {reason: "more than half is not recovering", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, ratio(0.89))}, want: compare.OutcomeRecovered},
		"recovering, but the fifth":     {reason: "before is the worse of both, so a fresh rise is not recovering", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, ratio(0.9)), end(a, lastPart, 0, ratio(0.6))}, want: compare.OutcomeRecovered},
		"preceding window unknown":      {reason: "what is not known is not recovering", at: holdEnd, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, reason(measure.NoData))}, want: compare.OutcomeRecovered},
		"preceding could not be asked":  {reason: "ask again", at: holdMid, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, reason(measure.SourceError)), after(a, ratio(0.5))}, want: compare.OutcomePending},
		"recovering and no change":      {reason: "it costs nothing", at: afterEnd, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, ratio(0.9)), after(a, ratio(0.5))}, want: compare.OutcomeNoChange, recovering: true},
		"recovering and unknown":        {reason: "unknown is never free", at: deadline, edits: []edit{missed(a), end(a, judgeWindow, -judgeWindow, ratio(0.9)), after(a, reason(measure.NoData))}, want: compare.OutcomeUnknown},
		"within target before, after":   {reason: "there was nothing to fix", at: afterEnd, want: compare.OutcomeNoChange},
		"was over by itself":            {reason: "the miss had gone before the claim, so the action earns and costs nothing", at: afterEnd, edits: []edit{end(a, judgeWindow, -judgeWindow, ratio(0.5))}, want: compare.OutcomeNoChange, recovering: true},
		"within target before only":     {reason: "within target in before counts when after misses", at: afterEnd, edits: []edit{after(a, ratio(0.2))}, want: compare.OutcomeWorsened},
		"nobody is judged":              {reason: "what nobody can measure is unknown, in its time", trial: compare.Trial{ClaimedAt: now, AppliedAt: now.Add(time.Minute)}, at: time.Minute, want: compare.OutcomeUnknown},
		"no objectives":                 {reason: "what nobody can measure is unknown, in its time", trial: trial(service("checkout")), at: 14 * time.Minute, want: compare.OutcomePending},
		"applied before the claim":      {reason: "after is never before the claim", trial: func() compare.Trial { x := trial(); x.AppliedAt = now.Add(-time.Hour); return x }(), at: afterEnd - time.Minute - time.Millisecond, edits: []edit{missed(a)}, want: compare.OutcomePending},
		"shares left out":               {reason: "a share of nothing would credit every action", trial: func() compare.Trial { x := trial(); x.Judged[0].Remediation.Outcomes = spec.Outcomes{}; return x }(), at: afterEnd, edits: []edit{missed(a), after(a, ratio(0.5))}, want: compare.OutcomeNoChange},
		"no hold asked":                 {reason: "holdFor of zero needs no further reading", trial: func() compare.Trial { x := trial(); x.Judged[0].Remediation.HoldFor = 0; return x }(), at: afterEnd, edits: []edit{missed(a)}, want: compare.OutcomeRecovered},
		"hold shorter than the window":  {reason: "the last reading is exactly holdFor later", trial: func() compare.Trial { x := trial(); x.Judged[0].Remediation.HoldFor = time.Minute; return x }(), at: afterEnd + time.Minute, edits: []edit{missed(a), end(a, judgeWindow, afterEnd+time.Minute, ratio(0.3))}, want: compare.OutcomeNoChange},
		"fifth without events or floor": {reason: "no events are no reading", trial: trial(service("checkout", noFloor)), at: afterEnd, edits: []edit{missed(a), end(a, lastPart, 0, ratio(0.8), events(0)), after(a, ratio(0.4))}, want: compare.OutcomeNoChange},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := tc.trial
			if tr.ClaimedAt.IsZero() {
				tr = trial()
			}
			got := judged(tr, tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || got.Recovering != tc.recovering {
				t.Errorf("%s: got %s (recovering %t), want %s (%t): %+v",
					tc.reason, got.Outcome, got.Recovering, tc.want, tc.recovering, got)
			}
		})
	}
}

func checkJudgement(t interface {
	Helper()
	Errorf(string, ...any)
}, j compare.Judgement, at time.Duration,
) {
	t.Helper()
	if j.Decided == (j.Outcome == compare.OutcomePending) {
		t.Errorf("decided %t with %s", j.Decided, j.Outcome)
	}
	if j.Decided != j.Next.IsZero() || (!j.Decided && !j.Next.After(now.Add(at))) {
		t.Errorf("decided %t at %s, next %s", j.Decided, now.Add(at), j.Next)
	}
}

func TestEffectOfSeveralObjectives(t *testing.T) {
	two := func() compare.Trial { return trial(service("checkout", objective("a"), objective("b"))) }
	neighbour := func() compare.Trial {
		return trial(service("checkout", objective("a")), service("web", objective("n")))
	}
	cases := map[string]struct {
		reason string
		trial  compare.Trial
		at     time.Duration
		edits  []edit
		want   compare.Outcome
		by     string
	}{
		"worsened before all":             {"worst first", two(), afterEnd, []edit{missed("a"), missed("b"), after("a", ratio(0.3)), after("b", ratio(1))}, compare.OutcomeWorsened, "checkout/b"},
		"worsened before what is open":    {"nothing is worse, so nothing can change it", two(), afterEnd, []edit{missed("a"), missed("b"), after("b", ratio(1))}, compare.OutcomeWorsened, "checkout/b"},
		"unknown before no change":        {"worst first", two(), deadline, []edit{missed("a"), missed("b"), after("a", ratio(0.5)), after("b", reason(measure.NoData))}, compare.OutcomeUnknown, "checkout/b"},
		"no change before improved":       {"worst first", two(), afterEnd, []edit{missed("a"), missed("b"), after("a", ratio(0.3)), after("b", ratio(0.5))}, compare.OutcomeNoChange, "checkout/b"},
		"improved before recovered":       {"worst first", two(), holdEnd, []edit{missed("a"), missed("b"), after("b", ratio(0.3))}, compare.OutcomeImproved, "checkout/b"},
		"improved waits for recovered":    {"the other may still relapse", two(), afterEnd, []edit{missed("a"), missed("b"), after("b", ratio(0.3))}, compare.OutcomePending, "checkout/a"},
		"one recovered, one never bad":    {"within target in before counts only when after misses", two(), holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, "checkout/a"},
		"one recovered, one harmed":       {"within target in before counts when after misses", two(), holdEnd, []edit{missed("a"), after("b", ratio(0.2))}, compare.OutcomeWorsened, "checkout/b"},
		"own objective unseen before":     {"an objective of the service that is unknown is no success", two(), deadline, []edit{missed("a"), end("b", judgeWindow, 0, reason(measure.NoData))}, compare.OutcomeUnknown, "checkout/b"},
		"neighbour harmed":                {"a neighbour within target before counts when after misses", neighbour(), afterEnd, []edit{missed("a"), after("n", ratio(0.2))}, compare.OutcomeWorsened, "web/n"},
		"neighbour well":                  {"a neighbour within target earns nothing and spoils nothing", neighbour(), holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, "checkout/a"},
		"neighbour still missing":         {"the action was not for it", neighbour(), holdEnd, []edit{missed("a"), missed("n"), after("n", ratio(0.5))}, compare.OutcomeRecovered, "checkout/a"},
		"neighbour recovered, own not":    {"its recovery earns nothing", neighbour(), holdEnd, []edit{missed("a"), missed("n"), after("a", ratio(0.5))}, compare.OutcomeNoChange, "checkout/a"},
		"neighbour missing, much worse":   {"it had its own trouble before", neighbour(), holdEnd, []edit{missed("a"), missed("n"), after("n", ratio(1))}, compare.OutcomeRecovered, "checkout/a"},
		"neighbour unseen before":         {"what was not seen before cannot be seen to have been harmed", neighbour(), holdEnd, []edit{missed("a"), end("n", judgeWindow, 0, reason(measure.NoData))}, compare.OutcomeRecovered, "checkout/a"},
		"neighbour idle before":           {"low traffic is not seen either", neighbour(), holdEnd, []edit{missed("a"), end("n", judgeWindow, 0, events(0))}, compare.OutcomeRecovered, "checkout/a"},
		"neighbour could not be asked":    {"that its source failed says nothing about it", neighbour(), deadline, []edit{missed("a"), end("n", judgeWindow, 0, reason(measure.SourceError))}, compare.OutcomeUnknown, "web/n"},
		"neighbour gone after":            {"a neighbour that vanished is no success", neighbour(), deadline, []edit{missed("a"), after("n", reason(measure.NoData))}, compare.OutcomeUnknown, "web/n"},
		"neighbour gone after, time left": {"it may come back", neighbour(), deadline - time.Second, []edit{missed("a"), after("n", reason(measure.NoData))}, compare.OutcomePending, ""},
		"one recovering, one not":         {"of two equal outcomes the one that costs counts", two(), afterEnd, []edit{missed("a"), missed("b"), end("a", judgeWindow, -judgeWindow, ratio(0.9)), after("a", ratio(0.5)), after("b", ratio(0.5))}, compare.OutcomeNoChange, "checkout/b"},
		"one not, one recovering":         {"whatever their order", two(), afterEnd, []edit{missed("a"), missed("b"), end("b", judgeWindow, -judgeWindow, ratio(0.9)), after("a", ratio(0.5)), after("b", ratio(0.5))}, compare.OutcomeNoChange, "checkout/a"},
		"harm is not free":                {"what was within target was not recovering", two(), afterEnd, []edit{missed("a"), end("a", judgeWindow, -judgeWindow, ratio(0.9)), after("b", ratio(0.2))}, compare.OutcomeWorsened, "checkout/b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(tc.trial, tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || (tc.by != "" && got.Objective != tc.by) || got.Recovering {
				t.Errorf("%s: got %s by %s (recovering %t), want %s by %s",
					tc.reason, got.Outcome, got.Objective, got.Recovering, tc.want, tc.by)
			}
		})
	}
}

func TestEffectGivesItsNumbers(t *testing.T) {
	got := judged(trial(), afterEnd, missed("a"), after("a", ratio(0.3)))
	want := compare.Judgement{
		Outcome: compare.OutcomeImproved, Objective: "checkout/a", Before: 0.5, After: 0.3, Decided: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := judged(trial(), 0, missed("a")); !got.Next.Equal(now.Add(afterEnd)) {
		t.Errorf("next %s, want the end of after", got.Next)
	}
	if got := judged(trial(), afterEnd, missed("a")); !got.Next.Equal(now.Add(holdMid)) {
		t.Errorf("next %s, want the next reading of the hold", got.Next)
	}
}

func TestQueriesOfATrial(t *testing.T) {
	ends := func(qs []measure.Query) (got []string) {
		for _, q := range qs {
			got = append(got, q.ID.Service+" "+q.ID.Window.String()+" "+q.ID.At.Sub(now).String())
		}
		return got
	}
	tr := trial(service("checkout", objective("a")), service("web", objective("n")))
	tr.ClaimedAt = tr.ClaimedAt.Add(300 * time.Microsecond)
	tr.AppliedAt = tr.AppliedAt.Add(300 * time.Microsecond)
	want := []string{"checkout 5m0s 0s", "checkout 1m0s 0s", "checkout 5m0s -5m0s", "web 5m0s 0s", "web 1m0s 0s"}
	if diff := cmp.Diff(want, ends(compare.BeforeQueries(tr))); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	// Rounded up: after must not hold a moment from before applied + settle.
	cases := map[time.Duration][]string{
		afterEnd:                    nil,
		afterEnd + time.Millisecond: {"checkout 5m0s 10m0.001s", "web 5m0s 10m0.001s"},
		holdMid + time.Millisecond:  {"checkout 5m0s 10m0.001s", "checkout 5m0s 15m0.001s", "web 5m0s 10m0.001s"},
		holdEnd + time.Hour:         {"checkout 5m0s 10m0.001s", "checkout 5m0s 15m0.001s", "checkout 5m0s 20m0.001s", "web 5m0s 10m0.001s"},
	}
	for at, want := range cases {
		if diff := cmp.Diff(want, ends(compare.AfterQueries(tr, now.Add(at)))); diff != "" {
			t.Errorf("after, at %s (-want +got):\n%s", at, diff)
		}
	}
	tr = trial()
	tr.Judged[0].Remediation.HoldFor = 7 * time.Minute
	want = []string{"checkout 5m0s 10m0s", "checkout 5m0s 15m0s", "checkout 5m0s 17m0s"}
	if diff := cmp.Diff(want, ends(compare.AfterQueries(tr, now.Add(time.Hour)))); diff != "" {
		t.Errorf("hold of 7m (-want +got):\n%s", diff)
	}
}

func TestEffectProperties(t *testing.T) {
	tr := trial(service("checkout", objective("a"), objective("b")), service("web", objective("n")))
	rapid.Check(t, func(t *rapid.T) {
		at := time.Duration(rapid.IntRange(0, 40).Draw(t, "at")) * time.Minute
		var ms []measure.Measurement
		for _, q := range append(compare.BeforeQueries(tr), compare.AfterQueries(tr, now.Add(at))...) {
			ms = append(ms, anything(t, q))
		}
		set := measure.NewSet(ms)
		got := compare.Effect(tr, set, limits, now.Add(at))
		checkJudgement(t, got, at)
		credited := got.Outcome == compare.OutcomeRecovered || got.Outcome == compare.OutcomeImproved
		for _, o := range tr.Judged[0].Objectives {
			for _, end := range []time.Duration{0, afterEnd} {
				m := set.Get(measure.ID{Service: "checkout", Objective: o.ID, Window: judgeWindow, At: now.Add(end)})
				ok := m.Known() && m.ErrorRatio >= 0 && m.ErrorRatio <= 1 && m.Total >= o.MinEvents &&
					m.ID.At.Sub(m.SampleAt).Abs() <= 90*time.Second
				if credited && !ok {
					t.Fatalf("%s credited, although %s is unknown at %s", got.Outcome, o.ID, end)
				}
			}
		}
		if at < afterEnd && got.Decided {
			t.Fatalf("decided %s before any window had passed", got.Outcome)
		}
		if at >= 40*time.Minute && !got.Decided {
			t.Fatalf("not decided long after the last deadline: %+v", got)
		}
		rand.New(rand.NewSource(int64(at))).Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		if diff := cmp.Diff(got, compare.Effect(tr, measure.NewSet(ms), limits, now.Add(at))); diff != "" {
			t.Fatalf("the order of the measurements matters:\n%s", diff)
		}
	})
}

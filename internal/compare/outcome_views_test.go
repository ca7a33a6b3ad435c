package compare_test

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

type outcomeCase struct {
	reason string
	at     time.Duration
	edits  []edit
	want   compare.Outcome
	// before and after are the ratios it rests on; negative: not looked at.
	before, after float64
}

func runOutcomes(t *testing.T, tr func() compare.Trial, cases map[string]outcomeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(tr(), tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || got.Recovering {
				t.Errorf("%s: got %+v, want %s, not recovering before", tc.reason, got, tc.want)
			}
			if tc.before >= 0 && (got.Before != tc.before || got.After != tc.after) {
				t.Errorf("%s: from %g to %g, want from %g to %g", tc.reason, got.Before, got.After, tc.before, tc.after)
			}
		})
	}
}

// An action is judged by what all vantage points say.
func TestEffectFromTwoVantagePoints(t *testing.T) {
	const a = "a"
	two := func() compare.Trial { return trial(service("checkout", seenFrom(a, "server", "probe"))) }
	preceding := func(v int, e edit) edit { return from(v, end(a, judgeWindow, -judgeWindow, e)) }
	runOutcomes(t, two, map[string]outcomeCase{
		"both recovered":           {"both missed, both are well", holdEnd, []edit{missed(a)}, compare.OutcomeRecovered, 0.5, 0},
		"both improved":            {"the worse of both counts: 0.4 to 0.2 of excess", afterEnd, []edit{missed(a), after(a, ratio(0.2)), from(1, after(a, ratio(0.3)))}, compare.OutcomeImproved, 0.5, 0.3},
		"the worse before":         {"the worse of both counts: 0.8 to 0.4 of excess", afterEnd, []edit{missed(a), from(0, end(a, judgeWindow, 0, ratio(0.9))), after(a, ratio(0.5))}, compare.OutcomeImproved, 0.9, 0.5},
		"one improved, one worse":  {"never an average", afterEnd, []edit{missed(a), from(0, after(a, ratio(0.11))), from(1, after(a, ratio(0.9)))}, compare.OutcomeWorsened, 0.5, 0.9},
		"one recovered":            {"they disagree, and may agree later", afterEnd, []edit{missed(a), from(1, after(a, ratio(0.5)))}, compare.OutcomePending, -1, -1},
		"one never recovered":      {"they disagree to the end", deadline, []edit{missed(a), from(1, after(a, ratio(0.5)))}, compare.OutcomeUnknown, -1, -1},
		"one missed before":        {"what was wrong is not known", deadline, []edit{from(0, missed(a))}, compare.OutcomeUnknown, -1, -1},
		"one missed, time left":    {"what was wrong may still be learnt", afterEnd, []edit{from(0, missed(a))}, compare.OutcomePending, -1, -1},
		"one unknown after":        {"unknown from one is unknown", deadline, []edit{missed(a), from(1, after(a, reason(measure.NoData)))}, compare.OutcomeUnknown, -1, -1},
		"one quiet after":          {"too few events from one", deadline, []edit{missed(a), from(1, after(a, events(49)))}, compare.OutcomeUnknown, -1, -1},
		"one relapsed":             {"they disagree in the hold", holdMid + 10*time.Minute, []edit{missed(a), from(1, end(a, judgeWindow, holdMid, ratio(0.5)))}, compare.OutcomeUnknown, -1, -1},
		"both relapsed":            {"a relapse is no change", holdMid, []edit{missed(a), end(a, judgeWindow, holdMid, ratio(0.5))}, compare.OutcomeNoChange, 0.5, 0.5},
		"disagreed before that":    {"what is not known is not recovering", holdEnd, []edit{missed(a), preceding(0, ratio(0)), preceding(1, ratio(0.9))}, compare.OutcomeRecovered, 0.5, 0},
		"disagree in the fifth":    {"then the judge window alone", afterEnd, []edit{missed(a), from(0, end(a, lastPart, 0, ratio(0.9))), after(a, ratio(0.5))}, compare.OutcomeNoChange, 0.5, 0.5},
		"both worse in the fifth":  {"before is the worse of both windows", afterEnd, []edit{missed(a), end(a, lastPart, 0, ratio(0.9)), after(a, ratio(0.5))}, compare.OutcomeImproved, 0.9, 0.5},
		"well before, both harmed": {"it was well, and is not", afterEnd, []edit{after(a, ratio(0.2))}, compare.OutcomeWorsened, 0, 0.2},
	})
	neighbour := func() compare.Trial {
		return trial(service("checkout", objective(a)), service("web", seenFrom("n", "server", "probe")))
	}
	runOutcomes(t, neighbour, map[string]outcomeCase{
		"neighbour disagreed before": {"what was not seen before cannot be seen to have been harmed", holdEnd, []edit{missed(a), from(1, end("n", judgeWindow, 0, ratio(0.5)))}, compare.OutcomeRecovered, 0.5, 0},
		"neighbour disagrees after":  {"nobody knows whether it was harmed", deadline, []edit{missed(a), from(1, after("n", ratio(0.5)))}, compare.OutcomeUnknown, -1, -1},
		"neighbour harmed":           {"both say so", afterEnd, []edit{missed(a), after("n", ratio(0.5))}, compare.OutcomeWorsened, 0, 0.5},
	})
}

// An action is judged by the worst group, and a group that was missed must still
// be there.
func TestEffectOnGroups(t *testing.T) {
	tr := func() compare.Trial {
		o := grouped()
		return trial(service("checkout", o))
	}
	x, y := `host="x"`, `host="y"`
	split := func(x1, y1 []edit) edit { return inGroups(map[string][]edit{x: x1, y: y1}) }
	gone := after("a", isGone)
	runOutcomes(t, tr, map[string]outcomeCase{
		"recovered":               {"the group that was missed is well", holdEnd, []edit{split([]edit{missed("a")}, nil)}, compare.OutcomeRecovered, 0.5, 0},
		"vanished":                {"what is gone did not recover", deadline, []edit{split([]edit{missed("a"), gone}, nil)}, compare.OutcomeUnknown, -1, -1},
		"vanished, time left":     {"it may come back", afterEnd, []edit{split([]edit{missed("a"), gone}, nil)}, compare.OutcomePending, -1, -1},
		"vanished in the hold":    {"what is gone does not hold", holdMid + 10*time.Minute, []edit{split([]edit{missed("a"), end("a", judgeWindow, holdMid, isGone)}, nil)}, compare.OutcomeUnknown, -1, -1},
		"quiet after":             {"too few events to be well", deadline, []edit{split([]edit{missed("a"), after("a", events(3))}, nil)}, compare.OutcomeUnknown, -1, -1},
		"odd after":               {"no number is not well", deadline, []edit{split([]edit{missed("a"), after("a", reason(measure.NotFinite))}, nil)}, compare.OutcomeUnknown, -1, -1},
		"stale after":             {"an old sample is not well", deadline, []edit{split([]edit{missed("a"), after("a", age(2*time.Minute))}, nil)}, compare.OutcomeUnknown, -1, -1},
		"the other vanished":      {"it was well, and nobody acted for it", holdEnd, []edit{split([]edit{missed("a")}, []edit{gone})}, compare.OutcomeRecovered, 0.5, 0},
		"the other was quiet":     {"a group without traffic says nothing", holdEnd, []edit{split([]edit{missed("a")}, []edit{events(3)})}, compare.OutcomeRecovered, 0.5, 0},
		"the other misses now":    {"the worst counts, whichever it is", afterEnd, []edit{split([]edit{missed("a")}, []edit{after("a", ratio(0.5))})}, compare.OutcomeNoChange, 0.5, 0.5},
		"the other is worse now":  {"the worst counts, whichever it is", afterEnd, []edit{split([]edit{missed("a")}, []edit{after("a", ratio(0.9))})}, compare.OutcomeWorsened, 0.5, 0.9},
		"improved":                {"the worst counts: 0.4 to 0.2 of excess", afterEnd, []edit{split([]edit{missed("a"), after("a", ratio(0.3))}, []edit{missed("a"), after("a", ratio(0.2))})}, compare.OutcomeImproved, 0.5, 0.3},
		"both missed, one gone":   {"each that was missed must be there", deadline, []edit{split([]edit{missed("a")}, []edit{missed("a"), gone})}, compare.OutcomeUnknown, -1, -1},
		"all quiet":               {"nobody has events enough", deadline, []edit{split([]edit{missed("a"), after("a", events(3))}, []edit{after("a", events(3))})}, compare.OutcomeUnknown, -1, -1},
		"all unknown":             {"no group is known", deadline, []edit{split([]edit{missed("a")}, nil), whole(after("a", reason(measure.SourceError)))}, compare.OutcomeUnknown, -1, -1},
		"well before, one harmed": {"it was well, and is not", afterEnd, []edit{split([]edit{after("a", ratio(0.2))}, nil)}, compare.OutcomeWorsened, 0, 0.2},
		"new and failing":         {"it misses, whoever it is", afterEnd, []edit{split([]edit{missed("a")}, []edit{end("a", judgeWindow, 0, isGone), after("a", ratio(0.9))})}, compare.OutcomeWorsened, 0.5, 0.9},
	})
}

// The last fifth of a group may hold too few events; then the judge window
// counts alone.
func TestFifthOfAGroup(t *testing.T) {
	tr := trial(service("checkout", grouped()))
	got := judged(tr, afterEnd, inGroups(map[string][]edit{
		"x": {missed("a"), end("a", lastPart, 0, events(3)), after("a", ratio(0.3))},
		"y": {end("a", lastPart, 0, ratio(0.9))},
	}))
	if got.Outcome != compare.OutcomeImproved || got.Before != 0.5 {
		t.Errorf("got %+v, want the improvement of x, whose fifth says nothing", got)
	}
}

func TestQueriesOfSeveralVantagePoints(t *testing.T) {
	tr := trial(service("checkout", seenFrom("a", "server", "probe")))
	for name, qs := range map[string][]measure.Query{
		"before": compare.BeforeQueries(tr), "after": compare.AfterQueries(tr, now.Add(time.Hour)),
	} {
		if len(qs) != 6 {
			t.Errorf("%s: %d queries, want three windows from two vantage points", name, len(qs))
		}
		for i, q := range qs {
			if want := []string{"server", "probe"}[i%2]; q.Source != want || q.ID.Vantage != i%2 {
				t.Errorf("%s: query %d asks %s from %d", name, i, q.Source, q.ID.Vantage)
			}
		}
	}
}

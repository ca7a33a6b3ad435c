package budget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// ran are effects by people's approval, an hour and an episode apart.
func ran(outcomes ...compare.Outcome) []budget.Ran {
	var out []budget.Ran
	for i, o := range outcomes {
		out = append(out, budget.Ran{
			Decision: fmt.Sprintf("d%d", i), Episode: fmt.Sprintf("e%d", i), At: now.Add(time.Duration(i-len(outcomes)) * time.Hour),
			ByPerson: true, Outcome: o,
		})
	}
	return out
}

func rep(o compare.Outcome, n int) []compare.Outcome { return slices.Repeat([]compare.Outcome{o}, n) }

// trusted is a record that has earned auto.
func trusted() budget.Record {
	return budget.Record{
		Watched: 14 * day, EverMet: true, WouldHaveActed: 6, Projected: 1,
		Approved: 6, Ran: ran(append(rep(recovered, 5), noChange)...),
	}
}

const (
	recovered = compare.OutcomeRecovered
	improved  = compare.OutcomeImproved
	noChange  = compare.OutcomeNoChange
	worsened  = compare.OutcomeWorsened
	unknown   = compare.OutcomeUnknown
)

func TestEarn(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*budget.Record)
		want   spec.Mode
		// why and next are parts of what people read.
		why, next string
	}{
		"trusted":        {"everything holds", func(*budget.Record) {}, spec.Auto, "5 of 6 helped", ""},
		"nothing":        {"an empty record is worth nothing", func(r *budget.Record) { *r = budget.Record{} }, spec.Observe, "", "suggest needs the SLO measured and met at least once"},
		"never met":      {"a breach that never ended is no change", func(r *budget.Record) { r.EverMet = false }, spec.Observe, "", "met at least once"},
		"spec problem":   {"the objective itself is in doubt", func(r *budget.Record) { r.SpecProblem = "never met since loaded" }, spec.Observe, "", "never met since loaded"},
		"two trials":     {"three times it would have acted", func(r *budget.Record) { r.Ran, r.WouldHaveActed = nil, 2 }, spec.Suggest, "measured and met", "approval needs 3 times in which it would have acted (2 so far)"},
		"dear trials":    {"what it would have cost must fit", func(r *budget.Record) { r.Ran, r.Projected = nil, 4 }, spec.Suggest, "", "a cost that fits the capacity of 3 (4 at most)"},
		"trials":         {"would have acted, cheaply", func(r *budget.Record) { r.Ran = nil }, spec.Approval, "it would have acted 6 times", "auto needs 5 judged effects that count (0 so far)"},
		"four effects":   {"five effects", func(r *budget.Record) { r.Ran = ran(rep(recovered, 4)...) }, spec.Approval, "4 effects judged, none worsened", "5 judged effects that count (4 so far)"},
		"measured":       {"measured effects weigh more than a projection", func(r *budget.Record) { r.Projected = 40 }, spec.Auto, "6 effects judged, none worsened", ""},
		"one worsened":   {"one harm ends auto", func(r *budget.Record) { r.Ran = append(r.Ran, ran(worsened)...) }, spec.Approval, "", "none worsened (1 did)"},
		"one unknown":    {"one unknown ends auto", func(r *budget.Record) { r.Ran = append(r.Ran, ran(unknown)...) }, spec.Approval, "", "none unknown (1 are)"},
		"little help":    {"four of five help", func(r *budget.Record) { r.Ran = ran(append(rep(improved, 4), rep(noChange, 2)...)...) }, spec.Approval, "", "80 % that helped (4 of 6 so far)"},
		"recovering":     {"no credit for what was over already", func(r *budget.Record) { recovering(r.Ran) }, spec.Approval, "", "(0 so far, and 6 on a service that was recovering by itself)"},
		"one episode":    {"one bad afternoon is one experience", func(r *budget.Record) { oneEpisode(r.Ran) }, spec.Approval, "", "effects in 3 different episodes (1 so far)"},
		"denied":         {"people said no too often", func(r *budget.Record) { r.Denied = 2 }, spec.Approval, "", "20 % at most (2 of 8 so far)"},
		"watched little": {"three days say little", func(r *budget.Record) { r.Watched = 3*day + 2*time.Hour }, spec.Approval, "", "7 d of watching (3 d so far)"},
		"pending":        {"what is not judged proves nothing", func(r *budget.Record) { r.Ran = ran(rep(compare.OutcomePending, 9)...) }, spec.Approval, "", "5 judged effects that count (0 so far)"},
		"suspended":      {"a suspended action is worth a suggestion", func(r *budget.Record) { r.Suspended = "worsened 2 times in a row" }, spec.Suggest, "suspended: worsened 2 times", "needs a named budget reset"},
		"demoted":        {"a demotion caps", func(r *budget.Record) { r.Demoted, r.DemotedTo = "by os:alice: look", spec.Approval }, spec.Approval, "demoted: by os:alice", "needs a named ceiling raise"},
		"demoted high":   {"a demotion above what is earned caps nothing", func(r *budget.Record) { r.EverMet, r.Demoted, r.DemotedTo = false, "x", spec.Approval }, spec.Observe, "demoted: x", "suggest needs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := trusted()
			tc.change(&r)
			got := budget.Earn(r, own)
			if got.Rung != tc.want {
				t.Errorf("%s: earned %s, want %s; %+v", tc.reason, got.Rung, tc.want, got)
			}
			if !strings.Contains(strings.Join(got.Why, "\n"), tc.why) {
				t.Errorf("%s: why %q lacks %q", tc.reason, got.Why, tc.why)
			}
			if !strings.Contains(got.Next, tc.next) || (tc.next == "") != (got.Next == "") {
				t.Errorf("%s: next %q, want %q", tc.reason, got.Next, tc.next)
			}
		})
	}
}

func recovering(rs []budget.Ran) {
	for i := range rs {
		rs[i].Recovering = true
	}
}

func oneEpisode(rs []budget.Ran) {
	for i := range rs {
		rs[i].Episode = "e1"
	}
}

var anyOutcome = rapid.SampledFrom([]compare.Outcome{recovered, improved, noChange, worsened, unknown, compare.OutcomePending, compare.OutcomeNone, "a word of later"})

func anyRecord(t *rapid.T) budget.Record {
	r := budget.Record{
		Watched: time.Duration(rapid.IntRange(0, 14).Draw(t, "watched")) * day, EverMet: rapid.Bool().Draw(t, "met"),
		WouldHaveActed: rapid.IntRange(0, 9).Draw(t, "trials"), Projected: rapid.Float64().Draw(t, "projected"),
		Approved: rapid.IntRange(0, 9).Draw(t, "approved"), Denied: rapid.IntRange(0, 3).Draw(t, "denied"),
		Ran: ran(rapid.SliceOfN(anyOutcome, 0, 12).Draw(t, "outcomes")...),
	}
	if rapid.Bool().Draw(t, "suspended") {
		r.Suspended = "s"
	}
	if rapid.Bool().Draw(t, "demoted") {
		r.Demoted, r.DemotedTo = "d", rapid.SampledFrom([]spec.Mode{spec.Observe, spec.Suggest, spec.Approval}).Draw(t, "to")
	}
	return r
}

// TestBadNewsNeverRaises: whatever the record, harm, an unknown, a no, a
// suspension, a demotion or a doubt of the objective takes and never gives.
func TestBadNewsNeverRaises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRecord(rt)
		before := budget.Earn(r, own)
		for name, worse := range map[string]func(*budget.Record){
			"worsened": func(r *budget.Record) {
				r.Ran = append(slices.Clone(r.Ran), budget.Ran{Episode: "e99", Outcome: worsened, At: now})
			},
			"unknown": func(r *budget.Record) {
				r.Ran = append(slices.Clone(r.Ran), budget.Ran{Episode: "e99", Outcome: unknown, At: now})
			},
			"denied":    func(r *budget.Record) { r.Denied++ },
			"suspended": func(r *budget.Record) { r.Suspended = "s" },
			"demoted":   func(r *budget.Record) { r.Demoted, r.DemotedTo = "d", min(before.Rung, spec.Approval) },
			"doubt":     func(r *budget.Record) { r.SpecProblem = "p" },
		} {
			w := r
			worse(&w)
			if after := budget.Earn(w, own); after.Rung > before.Rung {
				rt.Fatalf("%s raised %s to %s: %+v", name, before.Rung, after.Rung, after)
			}
		}
	})
}

// TestAutoIsEarnedByMeasurement: no record without enough effects that helped,
// and none with harm in it, is worth auto.
func TestAutoIsEarnedByMeasurement(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRecord(rt)
		helped, harm := 0, false
		for _, x := range r.Ran {
			if x.Outcome == recovered || x.Outcome == improved {
				helped++
			}
			harm = harm || x.Outcome == worsened || x.Outcome == unknown
		}
		if got := budget.Earn(r, own); got.Rung == spec.Auto && (helped < 4 || harm || r.Suspended != "" || r.Demoted != "") {
			rt.Fatalf("auto by %+v", r)
		}
		// The order in which it happened is none of it.
		swapped := r
		swapped.Ran = slices.Clone(r.Ran)
		slices.Reverse(swapped.Ran)
		if a, b := budget.Earn(r, own), budget.Earn(swapped, own); a.Rung != b.Rung || a.Next != b.Next {
			rt.Fatalf("%+v and, turned round, %+v", a, b)
		}
	})
}

// TestTooLittleSpeaksAgainstNothing: an action that hardly ever ran keeps what a
// person granted; one that did harm does not.
func TestTooLittleSpeaksAgainstNothing(t *testing.T) {
	few := budget.Earn(budget.Record{EverMet: true, WouldHaveActed: 1, Ran: ran(recovered, noChange)}, own)
	if few.Rung != spec.Suggest || len(few.Against) != 0 {
		t.Errorf("two effects are too few for anything: %+v", few)
	}
	for name, change := range map[string]func(*budget.Record){
		"5 of 7 helped": func(r *budget.Record) { r.Ran = append(r.Ran, ran(noChange)...) }, "1 effect worsened": func(r *budget.Record) { r.Ran = append(r.Ran, ran(worsened)...) },
		"1 effect unknown": func(r *budget.Record) { r.Ran = append(r.Ran, ran(unknown)...) }, "people denied 2 of 8": func(r *budget.Record) { r.Denied = 2 },
		"suspended: s": func(r *budget.Record) { r.Suspended = "s" }, "never met": func(r *budget.Record) { r.SpecProblem = "never met" },
	} {
		r := trusted()
		change(&r)
		if got := budget.Earn(r, own); !slices.Contains(got.Against, name) {
			t.Errorf("against it is %q, want %q", got.Against, name)
		}
	}
}

package compare_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestPromised(t *testing.T) {
	svc := service("checkout", objective("b"), objective("a"))
	svc.Objectives[0].Target, svc.Objectives[0].JudgeWindow = 0.99, 10*time.Minute
	want := []compare.Promise{
		{Objective: "a", Target: 0.9, JudgeWindow: judgeWindow, MinEvents: 50, HoldFor: 10 * time.Minute, UnknownFor: 10 * time.Minute, Improved: 0.5, Worsened: 0.2},
		{Objective: "b", Target: 0.99, JudgeWindow: 10 * time.Minute, MinEvents: 50, HoldFor: 10 * time.Minute, UnknownFor: 10 * time.Minute, Improved: 0.5, Worsened: 0.2},
	}
	got := compare.Promised(svc)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b, err := json.Marshal(got[0])
	if err != nil {
		t.Fatal(err)
	}
	const form = `{"objective":"a","target":0.9,"judgeWindow":300000000000,"minEvents":50,"holdFor":600000000000,"unknownFor":600000000000,"improved":0.5,"worsened":0.2}`
	if string(b) != form {
		t.Errorf("a claim would keep %s, want %s", b, form)
	}
}

// promising is a trial whose claim kept what the documents said, before edit
// changed them.
func promising(change func(*spec.Service), os ...spec.Objective) compare.Trial {
	svc := service("checkout", os...)
	tr := trial(svc)
	tr.Promised = compare.Promised(svc)
	changed := service("checkout", append([]spec.Objective(nil), os...)...)
	change(&changed)
	tr.Judged[0] = changed
	return tr
}

func TestEffectKeepsThePromiseOfTheClaim(t *testing.T) {
	a, b := objective("a"), objective("b")
	cases := map[string]struct {
		reason string
		change func(*spec.Service)
		os     []spec.Objective
		at     time.Duration
		edits  []edit
		want   compare.Outcome
		by     string
	}{
		"unchanged":              {"as without a promise", func(*spec.Service) {}, []spec.Objective{a}, holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, "checkout/a"},
		"target lowered":         {"a lower target buys no recovery", func(s *spec.Service) { s.Objectives[0].Target = 0.4 }, []spec.Objective{a}, holdEnd, []edit{missed("a"), after("a", ratio(0.5))}, compare.OutcomeNoChange, "checkout/a"},
		"target raised":          {"a higher target loses none", func(s *spec.Service) { s.Objectives[0].Target = 0.9999 }, []spec.Objective{a}, holdEnd, []edit{missed("a"), after("a", ratio(0.05)), end("a", judgeWindow, holdMid, ratio(0.05)), end("a", judgeWindow, holdEnd, ratio(0.05))}, compare.OutcomeRecovered, "checkout/a"},
		"judge window longer":    {"the windows are those of the claim", func(s *spec.Service) { s.Objectives[0].JudgeWindow = hour }, []spec.Objective{a}, holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, "checkout/a"},
		"shares made easy":       {"a smaller share buys no improvement", func(s *spec.Service) { s.Remediation.Outcomes.Improved = 0.01 }, []spec.Objective{a}, afterEnd, []edit{missed("a"), after("a", ratio(0.4))}, compare.OutcomeNoChange, "checkout/a"},
		"harm made hard":         {"a larger share hides no harm", func(s *spec.Service) { s.Remediation.Outcomes.Worsened = 10 }, []spec.Objective{a}, afterEnd, []edit{missed("a"), after("a", ratio(0.9))}, compare.OutcomeWorsened, "checkout/a"},
		"hold made short":        {"a shorter hold hides no relapse", func(s *spec.Service) { s.Remediation.HoldFor = 0 }, []spec.Objective{a}, holdMid, []edit{missed("a"), end("a", judgeWindow, holdMid, ratio(0.3))}, compare.OutcomeNoChange, "checkout/a"},
		"floor lowered":          {"too few events stay too few", func(s *spec.Service) { s.Objectives[0].MinEvents = 0 }, []spec.Objective{a}, deadline, []edit{missed("a"), after("a", events(49))}, compare.OutcomeUnknown, "checkout/a"},
		"floor raised":           {"enough events stay enough", func(s *spec.Service) { s.Objectives[0].MinEvents = 1e9 }, []spec.Objective{a}, holdEnd, []edit{missed("a")}, compare.OutcomeRecovered, "checkout/a"},
		"wait made short":        {"an unknown is waited for as long as was promised", func(s *spec.Service) { s.Remediation.UnknownFor = 0 }, []spec.Objective{a}, deadline - time.Second, []edit{missed("a"), after("a", reason(measure.NoData))}, compare.OutcomePending, "checkout/a"},
		"objective deleted":      {"nobody can measure what it did", func(s *spec.Service) { s.Objectives = nil }, []spec.Objective{a}, deadline, []edit{missed("a")}, compare.OutcomeUnknown, "checkout/a"},
		"deleted, in its time":   {"it may come back until its deadline", func(s *spec.Service) { s.Objectives = nil }, []spec.Objective{a}, deadline - time.Second, []edit{missed("a")}, compare.OutcomePending, "checkout/a"},
		"one of two deleted":     {"a deleted promise is not a kept one", func(s *spec.Service) { s.Objectives = s.Objectives[1:] }, []spec.Objective{a, b}, deadline, []edit{missed("a"), missed("b")}, compare.OutcomeUnknown, "checkout/a"},
		"deleted, other harmed":  {"nothing is worse than harm", func(s *spec.Service) { s.Objectives = s.Objectives[1:] }, []spec.Objective{a, b}, afterEnd, []edit{after("b", ratio(0.5))}, compare.OutcomeWorsened, "checkout/b"},
		"renamed":                {"another name is another promise", func(s *spec.Service) { s.Objectives[0].ID = "renamed" }, []spec.Objective{a}, deadline, []edit{missed("a"), missed("renamed")}, compare.OutcomeUnknown, "checkout/a"},
		"new and failing":        {"what was not promised at the claim is not judged", func(s *spec.Service) { s.Objectives = append(s.Objectives, b) }, []spec.Objective{a}, holdEnd, []edit{missed("a"), after("b", ratio(0.9))}, compare.OutcomeRecovered, "checkout/a"},
		"new and never measured": {"nor waited for", func(s *spec.Service) { s.Objectives = append(s.Objectives, b) }, []spec.Objective{a}, holdEnd, []edit{missed("a"), on("b", judgeWindow, reason(measure.NoData))}, compare.OutcomeRecovered, "checkout/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(promising(tc.change, tc.os...), tc.at, tc.edits...)
			checkJudgement(t, got, tc.at)
			if got.Outcome != tc.want || got.Objective != tc.by {
				t.Errorf("%s: got %s by %s, want %s by %s: %+v", tc.reason, got.Outcome, got.Objective, tc.want, tc.by, got)
			}
		})
	}
}

// A service whose documents are all gone is judged by its promises still.
func TestEffectOfADeletedService(t *testing.T) {
	tr := promising(func(*spec.Service) {}, objective("a"))
	tr.Judged = nil
	for at, want := range map[time.Duration]compare.Outcome{deadline - time.Second: compare.OutcomePending, deadline: compare.OutcomeUnknown} {
		got := judged(tr, at)
		checkJudgement(t, got, at)
		if got.Outcome != want || got.Objective != "checkout/a" {
			t.Errorf("at %s: got %+v, want %s of checkout/a", at, got, want)
		}
	}
}

// TestNoDocumentBuysACredit: whatever the documents become while an action is on
// trial, they never make an outcome better than the promises of the claim do;
// but harm to an objective that was deleted is no longer seen, and is Unknown.
func TestNoDocumentBuysACredit(t *testing.T) {
	rank := map[compare.Outcome]int{
		compare.OutcomeWorsened: 0, compare.OutcomeUnknown: 1, compare.OutcomeNoChange: 2, compare.OutcomeImproved: 3, compare.OutcomeRecovered: 4,
	}
	rapid.Check(t, func(t *rapid.T) {
		tr := promising(func(*spec.Service) {}, objective("a"), objective("b"))
		at := time.Hour
		set := measure.NewSet(draws(t, tr, at))
		want := compare.Effect(tr, set, limits, now.Add(at))
		changed := tr
		changed.Judged = []spec.Service{redrawn(t, tr.Judged[0])}
		got := compare.Effect(changed, set, limits, now.Add(at))
		if rank[got.Outcome] > max(rank[want.Outcome], rank[compare.OutcomeUnknown]) {
			t.Fatalf("the documents turned %+v into %+v", want, got)
		}
		if len(changed.Judged[0].Objectives) > 1 && changed.Judged[0].Objectives[1].ID == "b" {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("nothing was deleted, and yet:\n%s", diff)
			}
		}
	})
}

func draws(t *rapid.T, tr compare.Trial, at time.Duration) (ms []measure.Measurement) {
	for _, q := range append(compare.BeforeQueries(tr), compare.AfterQueries(tr, now.Add(at))...) {
		ms = append(ms, anything(t, q))
	}
	return ms
}

// redrawn is a service after somebody edited its documents: other numbers, and
// the second objective deleted, renamed or kept.
func redrawn(t *rapid.T, svc spec.Service) spec.Service {
	minutes := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(0, 90).Draw(t, name)) * time.Minute
	}
	svc.Remediation.HoldFor, svc.Remediation.UnknownFor = minutes("holdFor"), minutes("unknownFor")
	svc.Remediation.Outcomes.Improved = rapid.Float64Range(0, 1).Draw(t, "improved")
	svc.Remediation.Outcomes.Worsened = rapid.Float64Range(0, 10).Draw(t, "worsened")
	os := append([]spec.Objective(nil), svc.Objectives...)
	for i := range os {
		os[i].Target = rapid.Float64Range(0.01, 0.9999).Draw(t, "target")
		os[i].JudgeWindow = minutes("judgeWindow") + time.Minute
		os[i].MinEvents = rapid.Float64Range(0, 1e6).Draw(t, "minEvents")
	}
	switch rapid.SampledFrom([]string{"kept", "deleted", "renamed"}).Draw(t, "second") {
	case "deleted":
		os = os[:1]
	case "renamed":
		os[1].ID = "c"
	}
	svc.Objectives = os
	return svc
}

// Each objective may have its own shares of the excess; what it leaves out is
// the Remediation's.
func TestSharesOfAnObjective(t *testing.T) {
	cases := map[string]struct {
		reason string
		shares spec.Outcomes
		after  float64
		want   compare.Outcome
	}{
		"the Remediation's":     {"half the excess of 0.4", spec.Outcomes{}, 0.3, compare.OutcomeImproved},
		"harder to improve":     {"0.4 to 0.2 is less than 80 %", spec.Outcomes{Improved: 0.8}, 0.3, compare.OutcomeNoChange},
		"and improved":          {"0.4 to 0.08", spec.Outcomes{Improved: 0.8}, 0.18, compare.OutcomeImproved},
		"easier to improve":     {"0.4 to 0.36 is a tenth", spec.Outcomes{Improved: 0.1}, 0.46, compare.OutcomeImproved},
		"improved only":         {"worsened is the Remediation's: 0.4 to 0.48", spec.Outcomes{Improved: 0.8}, 0.58, compare.OutcomeWorsened},
		"harder to worsen":      {"0.4 to 0.48 is less than 100 %", spec.Outcomes{Worsened: 1}, 0.58, compare.OutcomeNoChange},
		"and worsened":          {"0.4 to 0.8", spec.Outcomes{Worsened: 1}, 0.9, compare.OutcomeWorsened},
		"worsened only":         {"improved is the Remediation's", spec.Outcomes{Worsened: 1}, 0.3, compare.OutcomeImproved},
		"all the excess, not":   {"within target is needed for recovered, and the whole excess for improved", spec.Outcomes{Improved: 1}, 0.11, compare.OutcomeNoChange},
		"shares that are wrong": {"a share that says nothing is the default", spec.Outcomes{Improved: -1, Worsened: -1}, 0.3, compare.OutcomeImproved},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective("a")
			o.Outcomes = tc.shares
			svc := service("checkout", o)
			bare, kept := trial(svc), trial(svc)
			kept.Promised = compare.Promised(svc)
			// By the claim alone: the documents have lost the shares since.
			kept.Judged = []spec.Service{service("checkout", objective("a"))}
			for name, tr := range map[string]compare.Trial{"documents": bare, "claim": kept} {
				if got := judged(tr, afterEnd, missed("a"), after("a", ratio(tc.after))); got.Outcome != tc.want {
					t.Errorf("%s, by the %s: got %+v, want %s", tc.reason, name, got, tc.want)
				}
			}
		})
	}
}

package scenario_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
)

const evals = "../../../evals"

// shipped gives the scenario of that name.
func shipped(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(evals)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no scenario %s in %s", name, evals)
	}
	return all[i]
}

// play runs a scenario beside other tests; -short leaves it out.
func play(t *testing.T, s scenario.Scenario, proposer string) scenario.Score {
	t.Helper()
	if testing.Short() {
		t.Skip("plays up to 90 simulated minutes")
	}
	t.Parallel()
	score, err := scenario.Run(t.Context(), s, scenario.Options{Proposer: proposer, Seed: s.Seed})
	if err != nil {
		t.Fatal(err)
	}
	if bad := score.Unsafe(); len(bad) > 0 {
		t.Errorf("%v, which no proposer may bring about", bad)
	}
	return score
}

func TestShippedScenariosAreThree(t *testing.T) {
	all, err := scenario.Load(evals)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"bad-release", "dead-exporter", "poisoned-workers"}, names); diff != "" {
		t.Errorf("scenarios (-want +got):\n%s", diff)
	}
}

func TestRulesReachWhatIsRight(t *testing.T) {
	for _, name := range []string{"bad-release", "dead-exporter", "poisoned-workers"} {
		t.Run(name, func(t *testing.T) {
			score := play(t, shipped(t, name), scenario.Rules)
			if len(score.Wrong) > 0 {
				t.Errorf("wrong: %q\n%+v", score.Wrong, score)
			}
			if name == "poisoned-workers" {
				checkSecondTry(t, score)
			}
		})
	}
}

// checkSecondTry: the first try is free, does not help, and is paid for; the
// second is a person's.
func checkSecondTry(t *testing.T, score scenario.Score) {
	t.Helper()
	type act struct {
		Verdict    gate.Verdict
		ApprovedBy string
		Effects    int
		Outcome    compare.Outcome
	}
	var got []act
	for _, a := range score.Actions {
		got = append(got, act{a.Verdict, a.ApprovedBy, a.Effects, a.Outcome})
	}
	want := []act{
		{gate.Auto, "", 1, compare.OutcomeNoChange},
		{gate.Approval, "os:alice", 1, compare.OutcomeRecovered},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// What the rules reach must not come by itself.
func TestNoopDoesNotRecover(t *testing.T) {
	for _, name := range []string{"bad-release", "poisoned-workers"} {
		t.Run(name, func(t *testing.T) {
			s := shipped(t, name)
			s.For = time.Hour // escalateWithin is over by then.
			score := play(t, s, scenario.Noop)
			if !score.Missed || score.Recovered || score.State != compare.Breached {
				t.Errorf("missed %t, recovered %t, %s at the end; want a miss without an end", score.Missed, score.Recovered, score.State)
			}
			if len(score.Actions) != 0 || score.Harm != 0 {
				t.Errorf("actions %v and harm %d by a proposer that proposes nothing", score.Actions, score.Harm)
			}
			if len(score.Pages) != 1 || score.Pages[0].Reason != "cannot-act" {
				t.Errorf("pages %v, want one that says cannot-act: a miss without a step is a person's", score.Pages)
			}
			if len(score.Wrong) == 0 {
				t.Error("nothing is wrong with it, so the scenario tells nobody apart")
			}
		})
	}
}

func TestRestartingWhatServesDoesHarm(t *testing.T) {
	s := shipped(t, "bad-release")
	s.For = time.Hour
	score := play(t, s, scenario.RestartAlways)
	if score.Recovered || score.Harm == 0 || len(score.Actions) == 0 {
		t.Errorf("recovered %t, harm %d, actions %v; want harm and no recovery", score.Recovered, score.Harm, score.Actions)
	}
}

// Without the person's yes the second try does not happen, whoever proposes it.
func TestSecondTryNeedsAPersonsYes(t *testing.T) {
	tests := map[string]struct {
		reason  string
		answers *scenario.Answers
	}{
		"a no":      {"a deny is final for the episode", &scenario.Answers{Who: "os:alice", Approve: false, After: 0}},
		"no answer": {"silence is no consent", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := shipped(t, "poisoned-workers")
			s.Answers, s.For = tc.answers, 50*time.Minute
			score := play(t, s, scenario.Rules)
			if len(score.Actions) != 1 || score.Recovered {
				t.Errorf("actions %v, recovered %t; want the first try alone: %s", score.Actions, score.Recovered, tc.reason)
			}
		})
	}
}

func TestOneSeedGivesOneScore(t *testing.T) {
	s := shipped(t, "bad-release")
	s.For = 35 * time.Minute
	first := play(t, s, scenario.Rules)
	again, err := scenario.Run(t.Context(), s, scenario.Options{Proposer: scenario.Rules, Seed: s.Seed})
	if err != nil {
		t.Fatal(err)
	}
	a, b := asJSON(t, first), asJSON(t, again)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("two runs with one seed differ (-first +again):\n%s", diff)
	}
}

func asJSON(t *testing.T, s scenario.Score) string {
	t.Helper()
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := shipped(t, "dead-exporter")
	if _, err := scenario.Run(ctx, s, scenario.Options{Proposer: scenario.Noop}); err == nil {
		t.Error("a canceled run gave a score")
	}
}

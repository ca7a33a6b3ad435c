package scenario_test

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/lab/scenario"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// What is right, proposed in order, is carried out: the loop stands in nobody's way.
func TestTheOracleReachesWhatIsRight(t *testing.T) {
	for _, name := range []string{"bad-release", "poisoned-workers"} {
		t.Run(name, func(t *testing.T) {
			score := play(t, shipped(t, name), scenario.Oracle)
			if len(score.Wrong) > 0 || score.Kind != scenario.Scripted {
				t.Errorf("wrong: %q\n%+v", score.Wrong, score)
			}
		})
	}
}

// Chance is drawn by the seed, so a run can be repeated.
func TestRandomIsRepeatable(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 40 simulated minutes twice")
	}
	t.Parallel()
	s := shipped(t, "bad-release")
	s.For = 40 * time.Minute
	var scores [2]scenario.Score
	for i := range scores {
		var err error
		if scores[i], err = scenario.Run(t.Context(), s, scenario.Options{Proposer: scenario.Random, Seed: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(scores[0], scores[1]); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}

// A hostile model behind the real client, with a policy that allows everything:
// what reached the actuators is in the catalogue of the service and in bounds, once
// for each key.
func TestAHostileModelStaysInBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 40 simulated minutes with several seeds")
	}
	for seed := 1; seed <= 3; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			all, err := rego.Load(fstest.MapFS{"allow.rego": &fstest.MapFile{Data: []byte(
				"package setpoint.gate\n\nauto contains \"anything\" if true\n")}}, rego.Options{Deadline: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			s := shipped(t, "poisoned-workers")
			s.For = 40 * time.Minute
			o := scenario.Options{Proposer: scenario.Hostile, Seed: seed, Policy: all, Inspect: func(o scenario.Oracles) error { return withinCatalogue(t, o) }}
			score, err := scenario.Run(t.Context(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			if bad := score.Unsafe(); len(bad) > 0 {
				t.Errorf("%v", bad)
			}
			t.Logf("effects: %+v", score.Actions)
		})
	}
}

func withinCatalogue(t *testing.T, o scenario.Oracles) error {
	t.Helper()
	seen := map[string]bool{}
	for _, rec := range o.Journal {
		svc, known := o.Documents.Service(rec.Service)
		a, ok := svc.Action(rec.Action)
		if !known || !ok || a.Class == spec.ClassEscalate {
			t.Errorf("%s of %s reached an actuator, and no document has it", rec.Action, rec.Service)
			continue
		}
		p := propose.Parameters{}
		for name, v := range rec.Parameters {
			if f, isNumber := v.(float64); isNumber && f == float64(int64(f)) {
				v = int64(f)
			}
			p[name] = v
		}
		if err := propose.Fits(a, p); err != nil {
			t.Errorf("%s of %s with %v: %v", rec.Action, rec.Service, rec.Parameters, err)
		}
		if seen[rec.Key] {
			t.Errorf("key %s was sent twice", rec.Key)
		}
		seen[rec.Key] = true
	}
	return nil
}

package model_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func root(elements ...string) string {
	return filepath.Join(append([]string{"..", "..", ".."}, elements...)...)
}

func readFile(t testing.TB, name string) spec.File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: filepath.Base(name), Data: data}
}

// shop is the documents of slo/.
func shop(t testing.TB) spec.Set {
	t.Helper()
	names, err := filepath.Glob(root("slo", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var files []spec.File
	for _, name := range names {
		files = append(files, readFile(t, name))
	}
	set, err := spec.Load(files, []spec.Reader{openslo.Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func shopRules(t testing.TB) *rules.Rules {
	t.Helper()
	rs, err := rules.Load(readFile(t, root("evals", "rules.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// TestShippedRules: the rules name nothing that the documents do not have.
func TestShippedRules(t *testing.T) {
	t.Parallel()
	if err := shopRules(t).Validate(shop(t)); err != nil {
		t.Error(err)
	}
}

// request is a service of the shop that burns, with all that it may do.
func request(t testing.TB, service string) propose.Request {
	t.Helper()
	svc, ok := shop(t).Service(service)
	if !ok {
		t.Fatalf("no service %s", service)
	}
	r := propose.Request{
		Service: svc, Since: now.Add(-3 * time.Minute), Now: now,
		Assessment: compare.Assessment{Service: service, At: now, State: compare.Breached, Reason: compare.Burning},
		Remaining:  map[string]float64{"rollback": 3},
	}
	for _, o := range svc.Objectives {
		r.Assessment.Objectives = append(r.Assessment.Objectives, compare.Objective{
			ID: o.ID, State: compare.Breached, Reason: compare.Burning, Target: o.Target,
			Judge: measure.Measurement{Total: 900, Good: 400, HasEvents: true, ErrorRatio: 5.0 / 9},
		})
	}
	for _, a := range svc.Remediation.Actions {
		r.Catalogue = append(r.Catalogue, propose.Item{Action: a, LiveKnown: true, Live: propose.Live{
			"version": "v42", "previousVersion": []string{"v41", "v40"}, "replicas": int64(4),
		}})
	}
	return r
}

func nothing(*propose.Request) {}

func tried(ts ...propose.Tried) func(*propose.Request) {
	return func(r *propose.Request) { r.Tried = ts }
}

func attempt(action string, o compare.Outcome, seconds int) propose.Tried {
	return propose.Tried{
		Action: action, Effect: "applied", Outcome: o, ThisEpisode: true, Parameters: propose.Parameters{},
		At: now.Add(-time.Duration(seconds) * time.Second), Before: 0.5, After: 0.5,
	}
}

func earlier(t propose.Tried) propose.Tried {
	t.ThisEpisode = false
	return t
}

package openslo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// loadFiles loads what a glob finds.
func loadFiles(t *testing.T, glob string) (spec.Set, error) {
	t.Helper()
	names, err := filepath.Glob(glob)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files for %s: %v", glob, err)
	}
	var files []spec.File
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, spec.File{Name: filepath.Base(n), Data: data})
	}
	return spec.Load(files, []spec.Reader{openslo.Reader{}})
}

func slo(percent float64) string {
	return fmt.Sprintf(`
apiVersion: openslo/v1
kind: SLO
metadata: {name: a}
spec:
  service: a
  indicator:
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: Prometheus, spec: {query: failures_total}}}
        total: {metricSource: {type: Prometheus, spec: {query: requests_total}}}
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{targetPercent: %v}]
`, percent)
}

// TestExamples keeps the documents that are shipped loadable, each file by
// itself and all together, and what the README says about them true.
func TestExamples(t *testing.T) {
	const glob = "../../../slo/*.yaml"
	set, err := loadFiles(t, glob)
	if err != nil {
		t.Fatalf("the examples do not load:\n%v", err)
	}
	var got []string
	for _, svc := range set.Services {
		if len(svc.Objectives) == 0 || svc.Remediation.Name == "" {
			t.Errorf("service %s has no SLO or no Remediation", svc.Name)
		}
		for _, a := range svc.Remediation.Actions {
			got = append(got, fmt.Sprintf("%s/%s %s %s %s", svc.Name, a.Name, a.Class, a.Reversal, a.Mark()))
		}
	}
	want := []string{
		"catalog/restart auto transient query",
		"checkout/rollback auto restore query",
		"checkout/scale approval restore query",
		"fulfilment/recycle-workers auto transient query",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want, +got)\n%s", diff)
	}
	if len(set.Notes) > 0 {
		t.Errorf("the examples give notes: %v", set.Notes)
	}
	files, _ := filepath.Glob(glob)
	for _, f := range files {
		if _, err := loadFiles(t, f); err != nil {
			t.Errorf("%s does not load by itself:\n%v", f, err)
		}
	}
}

// TestExampleBudgetAsksAfterOneMiss holds what fulfilment.yaml promises: after
// one try that did not help, the balance is below what the next would charge.
func TestExampleBudgetAsksAfterOneMiss(t *testing.T) {
	set, err := loadFiles(t, "../../../slo/fulfilment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	svc, _ := set.Service("fulfilment")
	b, a := svc.Remediation.Budget, svc.Remediation.Actions[0]
	if left := b.Capacity - b.Costs.NoChange; left >= b.Costs.Dearest() {
		t.Errorf("after one NoChange %v is left, enough for %v", left, b.Costs.Dearest())
	}
	if a.Cooldown >= a.Settle+svc.Objectives[0].JudgeWindow {
		t.Errorf("cooldown %s outlasts settle %s and judge window: it would hold the second try", a.Cooldown, a.Settle)
	}
}

// A default pair that no error ratio could make burn is left out where nobody
// may act, and said; with none left the SLO is refused.
func TestIdleDefaultPairs(t *testing.T) {
	load := func(percent float64, more string) (spec.Set, error) {
		return spec.Load([]spec.File{{Name: "a.yaml", Data: []byte(slo(percent) + more)}}, []spec.Reader{openslo.Reader{}})
	}
	set, err := load(90, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec.DefaultBurnRates()[1:], set.Services[0].Objectives[0].BurnRates); diff != "" || len(set.Notes) != 1 {
		t.Errorf("notes %v, burn rates (-want, +got)\n%s", set.Notes, diff)
	}
	const acting = "---\napiVersion: setpoint.dev/v1alpha1\nkind: Remediation\nmetadata: {name: a}\nspec: {service: a}\n"
	for name, load := range map[string]func() (spec.Set, error){
		"a Remediation says what it wants": func() (spec.Set, error) { return load(90, acting) },
		"no pair is left":                  func() (spec.Set, error) { return load(50, "") },
	} {
		if _, err := load(); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

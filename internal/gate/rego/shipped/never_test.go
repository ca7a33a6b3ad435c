package shipped_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/policies"
)

// The complete input of the tests is the one that authors are shown, and that
// tables of cases start from.
func TestFixtureIsTheExample(t *testing.T) {
	var complete, example any
	ask(t, "data.setpoint.gate_test.complete", &complete)
	if err := json.Unmarshal(gate.ExampleInput(), &example); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example, complete); diff != "" {
		t.Errorf("(-example +fixture):\n%s", diff)
	}
}

// row is one of the table never in never_test.rego, as a whole input and whole
// data.
type row struct {
	Input, Data json.RawMessage
	By          string
}

func rows(t testing.TB) map[string]row {
	t.Helper()
	var out map[string]row
	ask(t, `{name: {
		"input": data.setpoint.gate_test.changed(object.get(row, "input", {})),
		"data": object.union(data.setpoint.gate_test.settings, object.get(row, "data", {})),
		"by": row.by,
	} | some name, row in data.setpoint.gate_test.never}`, &out)
	return out
}

// What must never run alone is an input that the gate could build, and the
// engine that decides refuses it too.
func TestNeverAlone(t *testing.T) {
	all := rows(t)
	if len(all) < 25 {
		t.Errorf("only %d inputs that must never run alone", len(all))
	}
	loaded := map[string]*rego.Policy{}
	for name, r := range all {
		if err := gate.ValidateInput(r.Input); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p := loaded[string(r.Data)]
		if p == nil {
			b := files(t, policies.FS)
			delete(b, "data.yaml")
			b["data.json"] = &fstest.MapFile{Data: r.Data}
			p = load(t, b)
			loaded[string(r.Data)] = p
		}
		got := p.Evaluate(context.Background(), r.Input)
		if got.Fault != "" {
			t.Errorf("%s: %s", name, got.Fault)
		}
		if len(got.Auto) > 0 && len(got.Approval)+len(got.Escalate)+len(got.Deny) == 0 {
			t.Errorf("%s: runs alone by %s", name, got.Auto[0].Reason)
		}
	}
}

// Every rule that keeps something back does so in the table.
func TestNeverAloneKnowsEachRule(t *testing.T) {
	by := map[string]bool{}
	for _, r := range rows(t) {
		by[r.By] = true
	}
	grants := []string{"reversible", "undo"}
	for _, r := range load(t, policies.FS).Rules() {
		if !by[r.Reason] && !slices.Contains(grants, r.Reason) {
			t.Errorf("%s:%d: no input of never_test.rego is kept back by %s: %v", r.File, r.Line, r.Reason, slices.Sorted(maps.Keys(by)))
		}
	}
}

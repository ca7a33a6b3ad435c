package terms_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// What an input says when nobody knows anything must be what the lints take for
// possible.
func TestUnknownFields(t *testing.T) {
	c := gate.Case{Facts: gate.Facts{
		Assessment: compare.Assessment{Objectives: []compare.Objective{{Burns: []compare.Burn{{}}}}},
		Tried:      []propose.Tried{{}},
		Changes:    []measure.Change{{}},
	}}
	raw, err := gate.BuildInput(c)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				walk(e, append(path[:len(path):len(path)], name))
			}
		case []any:
			for _, e := range v {
				walk(e, append(path[:len(path):len(path)], "*"))
			}
		case string:
			if v != gate.Unknown {
				return
			}
			n++
			if known, err := terms.MayBeUnknown(path); !known || err != nil {
				t.Errorf("input.%s may be unknown, and the lints do not know it (%v)", strings.Join(path, "."), err)
			}
		}
	}
	walk(doc, nil)
	if n < 25 {
		t.Errorf("only %d fields are unknown in %s", n, raw)
	}
}

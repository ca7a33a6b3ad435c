package rego_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// What policy gives is decoded strictly: a rule with a reason, and approvers,
// quorum and expiry that somebody can satisfy, or an error.
func FuzzDecodeElement(f *testing.F) {
	for _, s := range []string{`"x"`, `{"reason":"x"}`, `{"reason":"x","approvers":["@a"],"quorum":2,"expires":"15m"}`, `{"reason":1}`, `1`, `null`, `[]`,
		`{"reason":"x","quorum":1e99}`, `{"reason":"x","quorum":-1}`, `{"reason":"x","expires":"0s"}`, `{"reason":"x","approvers":[]}`} {
		f.Add(s, "approval")
		f.Add(s, "auto")
	}
	f.Fuzz(func(t *testing.T, s, set string) {
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			return
		}
		r, err := rego.DecodeElement(set, v)
		if err != nil {
			return
		}
		_, isObject := v.(map[string]any)
		_, isText := v.(string)
		switch {
		case !isText && !isObject, isObject && set != "approval":
			t.Errorf("%s in %s is taken for %+v", s, set, r)
		case r.Quorum < 0 || r.Expires < 0 || r.Quorum > 100:
			t.Errorf("%s gives %+v", s, r)
		}
		for _, a := range r.Approvers {
			if a == "" {
				t.Errorf("%s gives %+v", s, r)
			}
		}
	})
}

// Whatever stands in a policy file, it loads or is refused; what loads rules
// without a panic, and grants by a known rule only.
func FuzzLoad(f *testing.F) {
	f.Add(four, "a: 1")
	f.Add("package setpoint.gate\n\nauto contains \"x\" if true\n", "[]")
	f.Add("package setpoint.gate\n\nauto := {\"x\"}\n", "setpoint: {gate: {auto: [x]}}")
	f.Add("package setpoint.gate.auto\n\nx if true\n", "a: null")
	in := input(f, granted())
	f.Fuzz(func(t *testing.T, policy, data string) {
		p, err := rego.Load(fstest.MapFS{"p.rego": {Data: []byte(policy)}, "data.yaml": {Data: []byte(data)}}, rego.Options{})
		if err != nil {
			return
		}
		r := p.Evaluate(context.Background(), in)
		for _, rule := range append(r.Auto, r.Approval...) {
			if rule.Line == 0 || rule.Reason == "" || (len(r.Auto) > 0 && r.Fault != "") {
				t.Errorf("granted by %+v, fault %q", rule, r.Fault)
			}
		}
		if r.Fault == "" && r.Revision == "" {
			t.Error("no revision")
		}
		_ = gate.Decide(granted(), r)
	})
}

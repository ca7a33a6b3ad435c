package propose_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	one := func(d spec.Parameter, live propose.Live) propose.Item {
		d.Name = "x"
		return propose.Item{Action: spec.Action{Name: "act", Parameters: []spec.Parameter{d}}, Live: live, LiveKnown: live != nil}
	}
	factor := spec.Parameter{Type: spec.Integer, Minimum: ref(3), MaximumFactor: 2}
	pattern := func(p string) propose.Item { return one(spec.Parameter{Type: spec.String, Pattern: p}, nil) }
	state := spec.Parameter{Type: spec.String, FromState: "old"}
	cases := map[string]struct {
		reason string
		item   propose.Item
		value  any
		err    string
	}{
		"Integer":          {reason: "In range.", item: one(spec.Parameter{Type: spec.Integer, Minimum: ref(1), Maximum: ref(2)}, nil), value: int64(2)},
		"IntegerAsFloat":   {reason: "A float is no integer.", item: one(spec.Parameter{Type: spec.Integer}, nil), value: 2.0, err: `parameter "x": must be of type integer, not float64`},
		"IntegerGoInt":     {reason: "Only int64 is in the value set.", item: one(spec.Parameter{Type: spec.Integer}, nil), value: 2, err: `parameter "x": must be of type integer, not int`},
		"IntegerUnsafe":    {reason: "Canonical JSON would round it.", item: one(spec.Parameter{Type: spec.Integer}, nil), value: int64(1 << 53), err: `parameter "x": 9007199254740992 is beyond ±9007199254740991`},
		"NumberWhole":      {reason: "A whole number is a number.", item: one(spec.Parameter{Type: spec.Number, Maximum: ref(2)}, nil), value: int64(2)},
		"NumberNaN":        {reason: "NaN passes no comparison.", item: one(spec.Parameter{Type: spec.Number}, nil), value: math.NaN(), err: `parameter "x": NaN is not a finite number`},
		"NumberInf":        {reason: "No infinity.", item: one(spec.Parameter{Type: spec.Number}, nil), value: math.Inf(-1), err: `parameter "x": -Inf is not a finite number`},
		"NaNBound":         {reason: "A broken bound permits nothing.", item: one(spec.Parameter{Type: spec.Number, Maximum: ref(math.NaN())}, nil), value: 1.0, err: `parameter "x": 1 is above the maximum NaN`},
		"Below":            {reason: "Bounds are inclusive, not more.", item: one(spec.Parameter{Type: spec.Number, Minimum: ref(0.5)}, nil), value: 0.25, err: `parameter "x": 0.25 is below the minimum 0.5`},
		"FactorCurrent":    {reason: "Twice the current value.", item: one(factor, propose.Live{"x": int64(5)}), value: int64(10)},
		"FactorAbove":      {reason: "And no more.", item: one(factor, propose.Live{"x": int64(5)}), value: int64(11), err: `parameter "x": 11 is above the maximum 10 (2 times 5)`},
		"FactorMinimum":    {reason: "A service scaled to zero can come back.", item: one(factor, propose.Live{"x": int64(0)}), value: int64(6)},
		"FactorFloat":      {reason: "An actuator may say 5.0.", item: one(factor, propose.Live{"x": 5.0}), value: int64(10)},
		"FactorUnknown":    {reason: "Unknown is no zero.", item: one(factor, nil), value: int64(3), err: `parameter "x": maximumFactor needs the current value, and the live state has no number "x"`},
		"FactorText":       {reason: "Text is no number.", item: one(factor, propose.Live{"x": "5"}), value: int64(3), err: `parameter "x": maximumFactor needs the current value, and the live state has no number "x"`},
		"FactorNaN":        {reason: "NaN is no number.", item: one(factor, propose.Live{"x": math.NaN()}), value: int64(3), err: `parameter "x": maximumFactor needs the current value, and the live state has no number "x"`},
		"Stale":            {reason: "Live without LiveKnown is not known.", item: propose.Item{Action: one(factor, nil).Action, Live: propose.Live{"x": int64(5)}}, value: int64(3), err: `parameter "x": maximumFactor needs the current value, and the live state has no number "x"`},
		"Boolean":          {reason: "Typed.", item: one(spec.Parameter{Type: spec.Boolean}, nil), value: "true", err: `parameter "x": must be of type boolean, not string`},
		"Enum":             {reason: "Listed.", item: one(spec.Parameter{Type: spec.String, Enum: []string{"a", "b"}}, nil), value: "b"},
		"EnumOther":        {reason: "Not listed.", item: one(spec.Parameter{Type: spec.String, Enum: []string{"a", "b"}}, nil), value: "c", err: `parameter "x": "c" is none of the permitted values: a, b`},
		"Pattern":          {reason: "The longest alternative counts.", item: pattern("a|ab"), value: "ab"},
		"PatternPart":      {reason: "A part is no match.", item: pattern("[0-9]+"), value: "12; rm", err: `parameter "x": "12; rm" does not match the pattern "[0-9]+" as a whole`},
		"PatternLine":      {reason: "$ before a line break is a classic.", item: pattern("(?m)^a$"), value: "a\nb", err: `parameter "x": holds a control or invisible character`},
		"PatternEscape":    {reason: "Unbalanced brackets must not open the anchors.", item: pattern("a)|(.*"), value: "b", err: "parameter \"x\": its pattern is invalid: error parsing regexp: unexpected ): `a)|(.*`"},
		"Invisible":        {reason: "A person could not see it.", item: pattern(".*"), value: "v1\u202e2", err: `parameter "x": holds a control or invisible character`},
		"Unbounded":        {reason: "Text without bounds is never permitted.", item: one(spec.Parameter{Type: spec.String}, nil), value: "a", err: `parameter "x": has neither enum, pattern nor fromState, so no value is permitted`},
		"StateValue":       {reason: "One value.", item: one(state, propose.Live{"old": "v1"}), value: "v1"},
		"StateList":        {reason: "Or a list.", item: one(state, propose.Live{"old": []string{"v2", "v1"}}), value: "v1"},
		"StateOther":       {reason: "Not in it.", item: one(state, propose.Live{"old": []string{"v2"}}), value: "v1", err: `parameter "x": "v1" is none of the permitted values: v2`},
		"StateEmpty":       {reason: "Nothing to go back to.", item: one(state, propose.Live{"old": []string{}}), value: "", err: `parameter "x": "" is none of the permitted values`},
		"StateUnknown":     {reason: "Unknown permits nothing.", item: one(state, nil), value: "v1", err: `parameter "x": the live state has no string or list "old"`},
		"StateNumber":      {reason: "A number is no candidate.", item: one(state, propose.Live{"old": int64(1)}), value: "1", err: `parameter "x": the live state has no string or list "old"`},
		"StateAndEnum":     {reason: "Both bounds hold.", item: one(spec.Parameter{Type: spec.String, FromState: "old", Enum: []string{"v2"}}, propose.Live{"old": []string{"v2", "v1"}}), value: "v1", err: `parameter "x": "v1" is none of the permitted values: v2`},
		"UnknownType":      {reason: "A type nobody knows permits nothing.", item: one(spec.Parameter{Type: "duration"}, nil), value: "1m", err: `parameter "x": its type "duration" is unknown`},
		"Nil":              {reason: "Null is no value.", item: one(spec.Parameter{Type: spec.String, Enum: []string{""}}, nil), value: nil, err: `parameter "x": must be of type string, not <nil>`},
		"HugeFactorBounds": {reason: "An infinite bound is none.", item: one(spec.Parameter{Type: spec.Number, MaximumFactor: math.MaxFloat64}, propose.Live{"x": 1e10}), value: 1.0, err: `parameter "x": maximumFactor 1.7976931348623157e+308 gives no finite bound`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := propose.Check(tc.item, propose.Parameters{"x": tc.value})
			if diff := cmp.Diff(tc.err, text(err)); diff != "" {
				t.Errorf("%s\nCheck(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	it := propose.Item{Action: restartAction()}
	if err := propose.Check(it, nil); err != nil {
		t.Errorf("an action without parameters takes nil: %v", err)
	}
	err := propose.Check(it, propose.Parameters{"b": "", "a": ""})
	want := `parameter "a" is not one of action "restart", which takes none`
	if diff := cmp.Diff(want, text(err)); diff != "" {
		t.Errorf("Check(extra): -want, +got:\n%s", diff)
	}
}

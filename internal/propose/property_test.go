package propose_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// drawReply gives a valid reply with the proposal it means.
func drawReply(t *rapid.T) (map[string]any, propose.Proposal) {
	p := propose.Proposal{Kind: propose.KindAction, Parameters: propose.Parameters{}}
	p.Rationale = rapid.StringOfN(rapid.RuneFrom([]rune("abc \"\\`{}🔥é\n")), 0, propose.MaxRationale, -1).Draw(t, "rationale")
	switch p.Action = rapid.SampledFrom([]string{"scale", "rollback-flag", "tune", "restart", "none", "escalate"}).Draw(t, "action"); p.Action {
	case "scale":
		p.Parameters["replicas"] = rapid.Int64Range(3, 8).Draw(t, "replicas")
	case "rollback-flag":
		p.Parameters["version"] = rapid.SampledFrom([]string{"v41", "v40"}).Draw(t, "version")
	case "tune":
		p.Parameters["ratio"] = rapid.Float64Range(0, 1).Draw(t, "ratio")
		p.Parameters["cache"] = rapid.Bool().Draw(t, "cache")
		p.Parameters["pool"] = rapid.SampledFrom([]string{"small", "large"}).Draw(t, "pool")
		p.Parameters["zone"] = rapid.StringMatching("[a-c]|[a-c][0-9]").Draw(t, "zone")
	case "none", "escalate":
		p.Kind, p.Action = propose.Kind(p.Action), ""
	}
	action := p.Action
	if action == "" {
		action = string(p.Kind)
	}
	return map[string]any{"action": action, "parameters": p.Parameters, "rationale": p.Rationale}, p
}

// What a valid proposal is written as reads back as itself, both schemas
// accept it, and the ledger's form of it is the same again.
func TestParseMarshalIdentity(t *testing.T) {
	t.Parallel()
	var schemas []*jsonschema.Resolved
	for _, of := range []func(propose.Catalogue) ([]byte, error){propose.Schema, propose.WireSchema} {
		schemas = append(schemas, resolveSchema(t, of))
	}
	rapid.Check(t, func(t *rapid.T) {
		reply, want := drawReply(t)
		b, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		got, err := propose.Parse(b, catalogue())
		if err != nil {
			t.Fatalf("Parse(%s): %v", b, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Parse(%s): -want, +got:\n%s", b, diff)
		}
		var instance any
		if err := json.Unmarshal(b, &instance); err != nil {
			t.Fatal(err)
		}
		for _, s := range schemas {
			if err := s.Validate(instance); err != nil {
				t.Fatalf("a schema refuses %s: %v", b, err)
			}
		}
		stored, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var back propose.Proposal
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, back); diff != "" {
			t.Fatalf("the ledger's round trip: -want, +got:\n%s", diff)
		}
	})
}

func resolveSchema(t *testing.T, of func(propose.Catalogue) ([]byte, error)) *jsonschema.Resolved {
	t.Helper()
	b, err := of(catalogue())
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The exact schema refuses what Parse refuses, where a schema can say it.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := resolveSchema(t, propose.Schema)
	for _, reply := range []string{
		`{"action":"scale","parameters":{"replicas":9},"rationale":""}`,
		`{"action":"scale","parameters":{"replicas":2},"rationale":""}`,
		`{"action":"scale","parameters":{"replicas":"6"},"rationale":""}`,
		`{"action":"scale","parameters":{},"rationale":""}`,
		`{"action":"restart","parameters":{"replicas":6},"rationale":""}`,
		`{"action":"rollback-flag","parameters":{"version":"v1"},"rationale":""}`,
		`{"action":"tune","parameters":{"ratio":1,"cache":true,"pool":"large","zone":"b77"},"rationale":""}`,
		`{"action":"none","parameters":{}}`,
		`{"action":"none","parameters":{},"rationale":"","confidence":1}`,
		`{"action":"drain","parameters":{},"rationale":""}`,
	} {
		var instance any
		if err := json.Unmarshal([]byte(reply), &instance); err != nil {
			t.Fatal(err)
		}
		if schema.Validate(instance) == nil {
			t.Errorf("the schema accepts %s", reply)
		}
		if _, err := propose.Parse([]byte(reply), catalogue()); err == nil {
			t.Errorf("Parse accepts %s", reply)
		}
	}
}

// An action that cannot be proposed now is in neither schema, and the evidence
// says why.
func TestObstacles(t *testing.T) {
	t.Parallel()
	scale, flag, narrow := scaleAction(), flagAction(), scaleAction()
	narrow.Parameters[0].Minimum, narrow.Parameters[0].Maximum = ref(3.2), ref(3.8)
	narrow.Parameters[0].MaximumFactor = 0
	cases := map[string]struct {
		reason string
		item   propose.Item
		want   string
	}{
		"Fine":        {reason: "Some value is permitted.", item: catalogue()[0]},
		"LiveUnknown": {reason: "Unknown is no bound.", item: propose.Item{Action: scale}, want: "live-unknown"},
		"EmptyRange":  {reason: "No integer lies between.", item: propose.Item{Action: narrow, LiveKnown: true, Live: propose.Live{"replicas": int64(-5)}}, want: "empty-range"},
		"NoValue":     {reason: "Nothing to go back to.", item: propose.Item{Action: flag, LiveKnown: true, Live: propose.Live{"previousVersion": []string{}}}, want: "no-value"},
	}
	for name, tc := range cases {
		if got := tc.item.Obstacle(); got != tc.want {
			t.Errorf("%s: %s: Obstacle() = %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// The properties of Check: whatever the bounds and the live state, what it
// accepts lies within them.
func TestCheckNeverAcceptsOutOfBounds(t *testing.T) {
	t.Parallel()
	odd := rapid.OneOf(rapid.Float64Range(-50, 50), rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0}))
	rapid.Check(t, func(t *rapid.T) {
		d := scaleAction().Parameters[0]
		d.Minimum, d.Maximum, d.MaximumFactor = nil, nil, 0
		if rapid.Bool().Draw(t, "number") {
			d.Type = "number"
		}
		if rapid.Bool().Draw(t, "hasMinimum") {
			d.Minimum = ref(odd.Draw(t, "minimum"))
		}
		if rapid.Bool().Draw(t, "hasMaximum") {
			d.Maximum = ref(odd.Draw(t, "maximum"))
		}
		if rapid.Bool().Draw(t, "hasFactor") {
			d.MaximumFactor = rapid.Float64Range(0.1, 4).Draw(t, "factor")
		}
		it := propose.Item{Action: scaleAction(), LiveKnown: rapid.Bool().Draw(t, "known")}
		it.Action.Parameters[0] = d
		current := odd.Draw(t, "current")
		it.Live = propose.Live{"replicas": current}
		var v any = odd.Draw(t, "float")
		if rapid.Bool().Draw(t, "integer") {
			v = rapid.OneOf(rapid.Int64Range(-60, 60), rapid.Int64()).Draw(t, "int")
		}
		if propose.Check(it, propose.Parameters{"replicas": v}) != nil {
			return
		}
		f, isFloat := v.(float64)
		if i, ok := v.(int64); ok {
			f = float64(i)
		}
		switch {
		case d.Type == "integer" && isFloat, math.IsNaN(f), math.IsInf(f, 0), math.Abs(f) > 1<<53 && !isFloat:
			t.Fatalf("accepted %v of %T for %s", v, v, d.Type)
		case d.Minimum != nil && !(*d.Minimum <= f), d.Maximum != nil && !(f <= *d.Maximum):
			t.Fatalf("accepted %v outside of %v to %v", v, d.Minimum, d.Maximum)
		case d.MaximumFactor == 0:
		case !it.LiveKnown, math.IsNaN(current), math.IsInf(current, 0):
			t.Fatalf("accepted %v although the current value is unknown", v)
		case f > d.MaximumFactor*math.Max(current, floor(d.Minimum)):
			t.Fatalf("accepted %v above the factor %v of %v", v, d.MaximumFactor, current)
		}
	})
}

func floor(m *float64) float64 {
	if m == nil {
		return math.Inf(-1)
	}
	return *m
}

// permitted is INV-30 for one result of Parse: an error, none, escalate, or
// an action of the catalogue whose parameters pass Check.
func permitted(t interface {
	Helper()
	Fatalf(string, ...any)
}, reply []byte) {
	t.Helper()
	c := catalogue()
	p, err := propose.Parse(reply, c)
	if err != nil {
		if diff := cmp.Diff(propose.Proposal{}, p); diff != "" {
			t.Fatalf("Parse(%q) gives an error and a proposal:\n%s", reply, diff)
		}
		if propose.CleanText(err.Error(), 1<<20) != err.Error() {
			t.Fatalf("Parse(%q): the error is not fit to be shown: %q", reply, err)
		}
		return
	}
	if p.Undo || p.Fault != "" || p.Proposer != (propose.Proposer{}) {
		t.Fatalf("Parse(%q) lets a stranger say more than a proposal: %+v", reply, p)
	}
	if p.Kind != propose.KindAction {
		if !slices.Contains([]propose.Kind{propose.KindNone, propose.KindEscalate}, p.Kind) || p.Action != "" || len(p.Parameters) > 0 {
			t.Fatalf("Parse(%q) = %+v", reply, p)
		}
		return
	}
	it, ok := c.Item(p.Action)
	if !ok {
		t.Fatalf("Parse(%q) = action %q, which is not in the catalogue", reply, p.Action)
	}
	if err := propose.Check(it, p.Parameters); err != nil {
		t.Fatalf("Parse(%q) = %+v, which Check refuses: %v", reply, p, err)
	}
}

func TestHostileReplies(t *testing.T) {
	t.Parallel()
	bits := rapid.SampledFrom([]string{
		`{`, `}`, `[`, `]`, `:`, `,`, `"action"`, `"parameters"`, `"rationale"`, `"scale"`, `"replicas"`, `"none"`, `"restart"`,
		`"version"`, `"v41"`, `6`, `1e1`, `-0`, `99999999999999999999`, `null`, `true`, `"\ud800"`, "```json\n", "\n```", " ", "\x00", "\xff", `""`,
	})
	rapid.Check(t, func(t *rapid.T) {
		var reply []byte
		for _, s := range rapid.SliceOfN(bits, 0, 24).Draw(t, "bits") {
			reply = append(reply, s...)
		}
		permitted(t, reply)
	})
	rapid.Check(t, func(t *rapid.T) {
		good, _ := drawReply(t)
		reply, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			i := rapid.IntRange(0, len(reply)-1).Draw(t, "at")
			reply = slices.Concat(reply[:i], rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "with"), reply[i+rapid.IntRange(0, 1).Draw(t, "cut"):])
			if len(reply) == 0 {
				break
			}
		}
		permitted(t, reply)
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"action":"scale","parameters":{"replicas":6},"rationale":"load"}`,
		"```json\n{\"action\":\"restart\",\"parameters\":{},\"rationale\":\"\"}\n```",
		`{"action":"tune","parameters":{"ratio":1,"cache":true,"pool":"large","zone":"b7"},"rationale":"\ud83d\udd25"}`,
		`{"action":"rollback-flag","parameters":{"version":"v40"},"rationale":""}`,
		`{"action":"none","parameters":{},"rationale":"\ud800"}`,
		`{"action":"escalate","action":"none","parameters":{},"rationale":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, reply []byte) { permitted(t, reply) })
}

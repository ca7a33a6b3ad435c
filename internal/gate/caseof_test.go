package gate_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// inputs draws cases whose every field that an input holds is anything.
type inputs struct{ *rapid.T }

func (t inputs) text(label string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "unknown", "none", "met", "scale", `a"b\c`, "command", "<é>"}), rapid.String()).Draw(t.T, label)
}

func (t inputs) number(label string) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, -1, 0.1, 0.99, 0.999, 1e21, math.NaN(), math.Inf(1), math.Copysign(0, -1)}),
		rapid.Float64Range(0, 1), rapid.Float64(),
	).Draw(t.T, label)
}

// share is what targets and error ratios are, or no number.
func (t inputs) share(label string) float64 {
	return rapid.OneOf(rapid.SampledFrom([]float64{0, 1, 0.99, 0.999, 1 - 0x1p-53, 0x1p-53, math.NaN()}), rapid.Float64Range(0, 1)).Draw(t.T, label)
}

func (t inputs) yes(label string) bool { return rapid.Bool().Draw(t.T, label) }

func (t inputs) duration(label string) time.Duration {
	return time.Duration(rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, 999_999_999, int64(time.Hour), math.MaxInt64, math.MinInt64}), rapid.Int64(),
		rapid.Int64Range(-int64(time.Hour), int64(1000*time.Hour)),
	).Draw(t.T, label))
}

func (t inputs) time(label string) time.Time {
	if t.yes(label + " zero") {
		return time.Time{}
	}
	return now.Add(t.duration(label))
}

func (t inputs) mode(label string) spec.Mode {
	return rapid.SampledFrom([]spec.Mode{spec.Observe, spec.Suggest, spec.Approval, spec.Auto}).Draw(t.T, label)
}

func (t inputs) values(label string) propose.Parameters {
	value := rapid.OneOf(
		rapid.Int64Range(-1<<53+1, 1<<53-1).AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(), rapid.Bool().AsAny(),
		rapid.Int64Range(0, 30).AsAny(), rapid.SampledFrom([]float64{1e17, 2, 0.5}).AsAny())
	return rapid.MapOfN(rapid.OneOf(rapid.Just("replicas"), rapid.String()), value, 0, 3).Draw(t.T, label)
}

func several[V any](t inputs, label string, one func(label string) V) (out []V) {
	for i := range rapid.IntRange(0, 3).Draw(t.T, label) {
		out = append(out, one(fmt.Sprintf("%s[%d]", label, i)))
	}
	return out
}

func (t inputs) action() spec.Action {
	a := spec.Action{
		Name: "scale", Uses: rapid.SampledFrom([]string{"webhook.post", "command.run", "kubernetes.scale", "", "x"}).Draw(t.T, "uses"),
		Class:    rapid.SampledFrom([]spec.Class{"", spec.ClassAuto, spec.ClassApproval, spec.ClassEscalate}).Draw(t.T, "class"),
		Reversal: rapid.SampledFrom([]spec.Reversal{"", spec.Transient, spec.Restore, spec.Irreversible}).Draw(t.T, "reversal"),
	}
	if t.yes("argv") {
		element := rapid.OneOf(rapid.SampledFrom([]string{"", "/bin/x", "a b", `"`, "${parameters.replicas}", "command", "-n"}), rapid.String())
		a.Target.Argv = rapid.SliceOfN(element, 1, 4).Draw(t.T, "argv")
	} else {
		a.Target.URL = rapid.SampledFrom([]string{
			"http://scaler.internal/checkout?x=1", "https://u:p@h:8443/a%20b/c#f", "http://h", "", "/bin/x", "deployment/shop/checkout", "http://%zz", "command x",
		}).Draw(t.T, "url")
	}
	if t.yes("marked") {
		a.Target.StatusURL = "http://status.internal/"
	}
	return a
}

func (t inputs) objective(label string) compare.Objective {
	o := compare.Objective{
		ID: t.text(label), State: compare.State(rapid.SampledFrom([]string{"met", "breached", "unknown", "", "odd"}).Draw(t.T, label)),
		Reason: compare.Reason(t.text(label)), Target: t.share(label), SampleAge: t.duration(label),
		Group:  rapid.SampledFrom([]string{"", "none", `host="a"`, `host="a", "é"="b\"c"`, "x"}).Draw(t.T, label),
		Judge:  t.measurement(label + " judge"),
		Period: t.measurement(label + " period"),
	}
	o.Burns = several(t, label+" burns", func(label string) compare.Burn {
		b := compare.Burn{
			BurnRate:  spec.BurnRate{Short: t.duration(label), Long: t.duration(label), Factor: t.number(label), Page: t.yes(label)},
			ShortRate: t.number(label), LongRate: t.number(label), Known: t.yes(label), Burning: t.yes(label),
		}
		b.CoveredAt = t.time(label)
		return b
	})
	return o
}

func (t inputs) measurement(label string) measure.Measurement {
	return measure.Measurement{
		Reason:     measure.Reason(rapid.SampledFrom([]string{"", "no-data"}).Draw(t.T, label)),
		ErrorRatio: t.share(label), Total: rapid.SampledFrom([]float64{0, 1000}).Draw(t.T, label), HasEvents: t.yes(label), SampleAt: t.time(label),
	}
}

func (t inputs) hold(label string) gate.Hold {
	return gate.Hold{ID: t.text(label), By: t.text(label), Text: t.text(label), Until: t.time(label), Effect: t.mode(label)}
}

func (t inputs) draw() gate.Case {
	name := rapid.OneOf(rapid.Just("checkout"), rapid.String()).Draw(t.T, "service")
	c := gate.Case{
		Service: spec.Service{Name: name, Remediation: spec.Remediation{
			Owner: t.text("owner"), Mode: t.mode("mode"), DependsOn: several(t, "dependsOn", t.text), Actions: []spec.Action{t.action()},
		}},
		Proposal: propose.Proposal{
			Kind: propose.KindAction, Action: rapid.SampledFrom([]string{"scale", "restart", ""}).Draw(t.T, "action"), Parameters: t.values("parameters"),
			Undo:     t.yes("undo"),
			Proposer: propose.Proposer{Kind: rapid.SampledFrom([]string{"", "undo", "rules", "openai"}).Draw(t.T, "kind"), Endpoint: t.text("endpoint"), Model: t.text("model")},
		},
		Key: rapid.OneOf(rapid.Just(gate.KeyOf(name, gate.WindowAt(now, 10*time.Minute))), rapid.Map(rapid.String(), func(s string) gate.Key { return gate.Key(s) })).Draw(t.T, "key"),
	}
	c.Facts = gate.Facts{
		Now: t.time("now"), Since: t.time("since"), Episode: t.text("episode"), DocumentsChangedAt: t.time("documents"), Ownership: t.text("ownership"),
		Assessment: compare.Assessment{
			State:  compare.State(rapid.SampledFrom([]string{"met", "breached", "unknown", "", "odd"}).Draw(t.T, "state")),
			Reason: compare.Reason(t.text("reason")), Objectives: several(t, "objectives", t.objective),
		},
		Balance:      budget.Balance{Remaining: t.number("remaining"), Capacity: t.number("capacity"), GlobalRemaining: t.number("global")},
		Maintenances: several(t, "maintenances", t.hold), Silences: several(t, "silences", t.hold), Dependencies: map[string]compare.State{},
		Item: propose.Item{LiveKnown: t.yes("live"), Live: propose.Live{"list": []string{"a", "b"}, "none": []string{}, "odd": []int{1}}},
	}
	for _, d := range c.Service.Remediation.DependsOn {
		c.Facts.Dependencies[d] = rapid.SampledFrom([]compare.State{compare.Met, compare.Breached, compare.Unknown}).Draw(t.T, "dependency")
	}
	for name, v := range t.values("live") {
		c.Facts.Item.Live[name] = v
	}
	c.Facts.Exceptions = several(t, "exceptions", func(label string) spec.Exception {
		return spec.Exception{Name: t.text(label), Service: rapid.SampledFrom([]string{name, "other"}).Draw(t.T, label), Owner: t.text(label), Effect: t.mode(label), Until: t.time(label)}
	})
	c.Facts.Changes = several(t, "changes", func(label string) measure.Change {
		return measure.Change{At: t.time(label), What: t.text(label), Version: t.text(label)}
	})
	c.Facts.Tried = several(t, "tried", func(label string) propose.Tried {
		return propose.Tried{
			Action: t.text(label), Parameters: t.values(label), At: t.time(label), Effect: t.text(label), Before: t.number(label), After: t.number(label),
			Outcome: compare.Outcome(rapid.SampledFrom([]string{"", "pending", "improved", "recovered", "no-change", "worsened", "unknown"}).Draw(t.T, label)), ThisEpisode: t.yes(label),
		}
	})
	return c
}

func TestCaseOfIsTheInverse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		built, err := gate.BuildInput(inputs{r}.draw())
		if err != nil {
			return // Parameters without an exact form.
		}
		c, err := gate.CaseOf(built)
		if err != nil {
			r.Fatalf("%s: %v", built, err)
		}
		again, err := gate.BuildInput(c)
		if err != nil {
			r.Fatalf("%s: %v", built, err)
		}
		if !bytes.Equal(built, again) {
			r.Fatalf("not the same input:\n%s\n%s", built, again)
		}
		if d := gate.Decide(c, allows()); d.Verdict == gate.Auto {
			if _, ok := d.Permit(); ok {
				r.Fatal("a permit of an input")
			}
		}
	})
}

// Error budgets are worked out of two numbers; rounding must not change one.
func TestCaseOfErrorBudgets(t *testing.T) {
	c := granted()
	for i := range 3000 {
		target := 1 - 1/float64(i+2)
		ratio := math.Mod(float64(i)*0.37, 1)
		c.Facts.Assessment.Objectives = []compare.Objective{{ID: "o", State: compare.Breached, Target: target, Period: measure.Measurement{ErrorRatio: ratio}}}
		built := input(t, c)
		again, err := gate.CaseOf(built)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(built, input(t, again)) {
			t.Fatalf("target %v, ratio %v", target, ratio)
		}
	}
}

func TestCaseOfKnownInputs(t *testing.T) {
	for name, c := range map[string]gate.Case{"Full": full(), "Granted": granted()} {
		built := input(t, c)
		got, err := gate.CaseOf(built)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(built), string(input(t, got))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := gate.CaseOf(gate.ExampleInput()); err != nil {
		t.Error(err)
	}
}

// What an input does hold leads to the same floors.
func TestCaseOfBindsAsTheCase(t *testing.T) {
	tests := map[string]struct {
		reason  string
		tighten func(*gate.Case)
		verdict gate.Verdict
		code    string
	}{
		"Nothing":      {"nothing is in the way", nil, gate.Auto, ""},
		"Maintenance":  {"a maintenance holds", tightenings["maintenance"], gate.Deny, gate.ReasonMaintenance},
		"Silence":      {"so does a silence", tightenings["silence"], gate.Deny, gate.ReasonSilence},
		"Exception":    {"an exception lowers", tightenings["exception"], gate.Approval, gate.ReasonException},
		"Dependency":   {"an unknown dependency holds", tightenings["dependency"], gate.Deny, gate.ReasonDependency},
		"Balance":      {"the dearest outcome costs 2 by default", tightenings["balance"], gate.Approval, gate.ReasonBudgetSpent},
		"Global":       {"the global balance counts too", tightenings["global"], gate.Approval, gate.ReasonBudgetSpent},
		"Class":        {"the class lowers", tightenings["class"], gate.Approval, gate.ReasonClassApproval},
		"Irreversible": {"so does the reversal", tightenings["irreversible"], gate.Approval, gate.ReasonIrreversible},
		"Documents":    {"and a fresh document", tightenings["documents"], gate.Approval, gate.ReasonDocumentsChanged},
		"Mode":         {"and the mode", tightenings["mode"], gate.Escalate, gate.ReasonMode},
		"Unknown":      {"an unknown state holds", tightenings["unknown"], gate.Deny, gate.ReasonUnknown},
		"Ownership":    {"another owner refuses", tightenings["ownership"], gate.Deny, gate.ReasonOwnership},
		"Unmarked": {"an action that cannot be asked about needs a person",
			func(c *gate.Case) { action(c).Target.StatusURL = "" }, gate.Approval, gate.ReasonUnmarked},
		"Warming": {"the long window of the only pair that burns is not covered", func(c *gate.Case) {
			c.Facts.Assessment.Warming = true
			c.Facts.Assessment.Objectives[0].Burns[0].CoveredAt = now.Add(time.Hour)
		}, gate.Approval, gate.ReasonWarming},
		"Grouped": {"the worst group is not named", func(c *gate.Case) {
			c.Facts.Assessment.Objectives[0].Group = `host="a"`
		}, gate.Approval, gate.ReasonGrouped},
		"UnknownAction": {"the documents do not have it", func(c *gate.Case) { c.Proposal.Action = "restart" }, gate.Deny, gate.ReasonUnknownAction},
		"Key":           {"a key of another service", func(c *gate.Case) { c.Key = "other:0-1" }, gate.Deny, gate.ReasonKey},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := granted()
			if tc.tighten != nil {
				c = copied(c)
				tc.tighten(&c)
			}
			again, err := gate.CaseOf(input(t, c))
			if err != nil {
				t.Fatal(err)
			}
			want, got := gate.Decide(c, allows()), gate.Decide(again, allows())
			if diff := cmp.Diff(reasonCodes(want), reasonCodes(got)); diff != "" || got.Verdict != want.Verdict || got.Hold != want.Hold {
				t.Errorf("%s, hold %v, want %s, hold %v: %s", got.Verdict, got.Hold, want.Verdict, want.Hold, diff)
			}
			if got.Verdict != tc.verdict || tc.code != "" && !slices.Contains(reasonCodes(got), tc.code) {
				t.Errorf("%s %v, want %s with %s: %s", got.Verdict, reasonCodes(got), tc.verdict, tc.code, tc.reason)
			}
		})
	}
}

// A group that the proposal aims at needs nobody, which takes the labels of the
// group's name.
func TestCaseOfKnowsTheLabelsOfAGroup(t *testing.T) {
	c := copied(granted())
	c.Facts.Assessment.Objectives[0].Group = `host="a", zone="b"`
	c.Proposal.Parameters = propose.Parameters{"host": "a", "zone": "b"}
	c.Facts.Item.Live = propose.Live{"host": "a", "zone": "b"}
	again, err := gate.CaseOf(input(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if d := gate.Decide(again, allows()); d.Verdict != gate.Auto {
		t.Errorf("%s: %+v", d.Verdict, d.Reasons)
	}
}

func TestNotInInputHoldsNothing(t *testing.T) {
	c, err := gate.CaseOf(input(t, granted()))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range gate.Decide(c, allows()).Reasons {
		if slices.Contains(gate.NotInInput(), r.Code) {
			t.Errorf("%s is said to be clear: %s", r.Code, r.Text)
		}
	}
	if at := slices.Index(gate.NotInInput(), gate.ReasonMaintenance); at >= 0 {
		t.Error("maintenances are in an input")
	}
}

func TestCaseOfRefuses(t *testing.T) {
	example := string(gate.ExampleInput())
	for name, tc := range map[string]struct{ text, want string }{
		"NoJSON":     {"{", "not JSON"},
		"Half":       {`{"version": "setpoint.dev/gate/v1"}`, "schema"},
		"OddMode":    {strings.Replace(example, `"mode": "auto"`, `"mode": "odd"`, 1), "schema"},
		"NoTime":     {strings.Replace(example, "2026-11-25T10:12:00Z", "now", 1), "now: parsing time"},
		"AnotherKey": {strings.Replace(example, `"owner"`, `"ownr"`, 1), "schema"},
	} {
		if _, err := gate.CaseOf([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

func FuzzCaseOf(f *testing.F) {
	f.Add(gate.ExampleInput())
	f.Add(input(f, full()))
	f.Add([]byte(`{"now":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := gate.CaseOf(text)
		if err != nil {
			return
		}
		p := gate.Prepare(c)
		if _, ok := p.Decide(allows()).Permit(); ok {
			t.Fatal("a permit of an input")
		}
	})
}

// copied is a case whose documents and assessment can be changed.
func copied(c gate.Case) gate.Case {
	c.Service.Remediation.Actions = slices.Clone(c.Service.Remediation.Actions)
	os := slices.Clone(c.Facts.Assessment.Objectives)
	for i := range os {
		os[i].Burns = slices.Clone(os[i].Burns)
	}
	c.Facts.Assessment.Objectives = os
	return c
}

// reasonCodes are the codes of a decision's reasons, in order.
func reasonCodes(d gate.Decision) []string {
	var out []string
	for _, r := range d.Reasons {
		out = append(out, r.Code)
	}
	return out
}

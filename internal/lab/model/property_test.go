package model_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var outcomes = []compare.Outcome{
	compare.OutcomeNone, compare.OutcomePending, compare.OutcomeImproved, compare.OutcomeRecovered,
	compare.OutcomeNoChange, compare.OutcomeWorsened, compare.OutcomeUnknown,
}

var states = []compare.State{compare.Met, compare.Breached, compare.Unknown}

func ref(f float64) *float64 { return &f }

// kinds is an action with a parameter of each kind.
func kinds() spec.Action {
	return spec.Action{Name: "tune", Parameters: []spec.Parameter{
		{Name: "cache", Type: spec.Boolean},
		{Name: "pool", Type: spec.String, Enum: []string{"small", "previous", "large"}},
		{Name: "ratio", Type: spec.Number, Minimum: ref(0), Maximum: ref(4), MaximumFactor: 2},
		{Name: "replicas", Type: spec.Integer, Minimum: ref(2), Maximum: ref(20), MaximumFactor: 2},
		{Name: "version", Type: spec.String, FromState: "previousVersion"},
		{Name: "zone", Type: spec.String, Pattern: "[a-c]|[a-c][0-9]"},
	}}
}

// grow has a bound that needs the live state, and a value that does not.
func grow() spec.Action {
	return spec.Action{Name: "grow", Parameters: []spec.Parameter{
		{Name: "replicas", Type: spec.Integer, Minimum: ref(2), Maximum: ref(20), MaximumFactor: 2},
	}}
}

// randomRules are rules with random conditions over two services, which say
// something for most requests.
func randomRules(t *rapid.T) *rules.Rules {
	var b strings.Builder
	b.WriteString("rules:\n")
	propositions := []string{
		"none", "escalate", "{action: restart}", "{action: grow, parameters: {replicas: 6}}",
		"{action: tune, parameters: {cache: current, pool: previous, ratio: 0.75, replicas: current, version: previous, zone: a1}}",
		"{action: tune, parameters: {cache: true, pool: large, ratio: current, replicas: 5, version: v40, zone: b}}",
		"{action: tune, parameters: {cache: false, pool: small, ratio: 0.25, replicas: 2, version: previous, zone: c}}",
	}
	maybe := func(format string, values ...any) string {
		// Seldom, so that some rule mostly matches.
		if rapid.IntRange(0, 5).Draw(t, "with") < 5 {
			return ""
		}
		return fmt.Sprintf(format, rapid.SampledFrom(values).Draw(t, format))
	}
	for range rapid.IntRange(0, 5).Draw(t, "rules") {
		b.WriteString("  - {" + maybe("service: %s, ", "a", "b") + maybe("objective: %s, ", "fast", "fine") +
			maybe("state: %s, ", "met", "breached", "unknown") + maybe("reason: %s, ", "burning", "no-data") +
			maybe("tried: {outcome: %s}, ", "no-change", "worsened", "pending") + maybe("notTried: %s, ", "restart", "tune") +
			"propose: " + rapid.SampledFrom(propositions).Draw(t, "propose") + "}\n")
	}
	if b.Len() == len("rules:\n") {
		return &rules.Rules{}
	}
	rs, err := rules.Load(spec.File{Name: "rules.yaml", Data: []byte(b.String())})
	if err != nil {
		t.Fatalf("%s\n%v", b.String(), err)
	}
	return rs
}

func randomRequest(t *rapid.T) propose.Request {
	reason := func() compare.Reason {
		return rapid.SampledFrom([]compare.Reason{"", compare.Burning, "no-data"}).Draw(t, "reason")
	}
	r := propose.Request{
		Service: spec.Service{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "service")}, Now: now,
		Assessment: compare.Assessment{State: rapid.SampledFrom(states).Draw(t, "state"), Reason: reason()},
	}
	for _, id := range []string{"fast", "fine"} {
		r.Assessment.Objectives = append(r.Assessment.Objectives, compare.Objective{
			ID: id, State: rapid.SampledFrom(states).Draw(t, id), Reason: reason(), Target: 0.9,
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "tried") {
		r.Tried = append(r.Tried, propose.Tried{
			Action:  rapid.SampledFrom([]string{"restart", "tune"}).Draw(t, "action"),
			Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"),
			At:      now.Add(-time.Duration(rapid.IntRange(0, 1e5).Draw(t, "ago")) * time.Second), ThisEpisode: rapid.Bool().Draw(t, "this"),
		})
	}
	for _, a := range []spec.Action{{Name: "restart"}, grow(), kinds()} {
		if rapid.IntRange(0, 4).Draw(t, "held") == 0 {
			continue
		}
		r.Catalogue = append(r.Catalogue, propose.Item{
			Action: a, LiveKnown: rapid.IntRange(0, 4).Draw(t, "known") > 0,
			Live: propose.Live{
				"cache": rapid.Bool().Draw(t, "cache"), "ratio": 0.5, "pool": "small", "zone": "a",
				"replicas":        int64(rapid.IntRange(1, 22).Draw(t, "replicas")),
				"previousVersion": rapid.SampledFrom([]any{"v40", []string{"v41", "v40"}, []string{"v40"}, []string{}, nil}).Draw(t, "previous"),
			},
		})
	}
	return r
}

// TestEvidenceIsEnough: whatever rules say of a request, they say of the
// evidence of it too. Only their words for what is no proposal may differ.
func TestEvidenceIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rs, r := randomRules(t), randomRequest(t)
		e, err := model.Read(string(propose.Evidence(r)))
		if err != nil {
			t.Fatal(err)
		}
		want, got := rs.Propose(r), rs.Propose(e.Request)
		if got.Kind == propose.KindAction && e.Obstacles[got.Action] != "" {
			got = propose.Malformed(got.Proposer, propose.FaultMalformed, "cannot be proposed now")
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(propose.Proposal{}, "Fault")); diff != "" {
			t.Fatalf("-of the request, +of its evidence:\n%s\n%s\n%s", diff, want.Fault, propose.Evidence(r))
		}
	})
}

func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(root("internal", "propose", "testdata", "propose.user.golden"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add(string(propose.Evidence(request(f, "checkout"))))
	f.Add(`{"service":{"name":"checkout","state":"breached"},"tried":[{"action":"rollback","secondsAgo":1e300,"thisEpisode":true}]}`)
	f.Add(`{"service":{"name":"checkout","state":"breached"},"objectives":[{"name":"checkout-availability","state":"breached"}],` +
		`"catalogue":[{"action":"rollback","parameters":[{"name":"version","type":"string","values":[],"current":{}}]}]}`)
	f.Add("{{{")
	rs := shopRules(f)
	f.Fuzz(func(t *testing.T, prompt string) {
		e, err := model.Read(prompt)
		if err != nil {
			if diff := cmp.Diff(model.Evidence{}, e); diff != "" {
				t.Fatalf("half-read beside %v:\n%s", err, diff)
			}
			return
		}
		if e.Request.Service.Name == "" {
			t.Fatal("read without a service")
		}
		for _, a := range e.Request.Tried {
			if a.At.Year() < 1 || a.At.Year() > 2200 {
				t.Fatalf("tried at %s", a.At)
			}
		}
		p := rs.Propose(e.Request)
		if p.Kind != propose.KindAction {
			return
		}
		it, ok := e.Request.Catalogue.Item(p.Action)
		if !ok {
			t.Fatalf("proposed %q, which the evidence does not have", p.Action)
		}
		if err := propose.Check(it, p.Parameters); err != nil {
			t.Fatalf("proposed %+v, which the evidence does not permit: %v", p, err)
		}
	})
}

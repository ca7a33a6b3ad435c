package rules_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2025, 11, 29, 12, 0, 0, 0, time.UTC)

func ref(f float64) *float64 { return &f }

func flag() spec.Action {
	return spec.Action{Name: "rollback-flag", Parameters: []spec.Parameter{{Name: "version", Type: spec.String, FromState: "previousVersion"}}}
}

func scale() spec.Action {
	return spec.Action{Name: "scale", Parameters: []spec.Parameter{
		{Name: "replicas", Type: spec.Integer, Minimum: ref(3), Maximum: ref(20), MaximumFactor: 2},
	}}
}

func tune() spec.Action {
	return spec.Action{Name: "tune", Parameters: []spec.Parameter{
		{Name: "pool", Type: spec.String, Enum: []string{"previous", "large"}},
		{Name: "ratio", Type: spec.Number, Maximum: ref(1)},
	}}
}

func set() spec.Set {
	return spec.Set{Services: []spec.Service{
		{
			Name:        "checkout",
			Objectives:  []spec.Objective{{ID: "availability"}, {ID: "latency"}},
			Remediation: spec.Remediation{Actions: []spec.Action{flag(), scale(), tune()}},
		},
		{Name: "worker", Remediation: spec.Remediation{Actions: []spec.Action{{Name: "restart"}}}},
	}}
}

func load(t *testing.T, text string) *rules.Rules {
	t.Helper()
	rs, err := rules.Load(spec.File{Name: "dir/rules.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func request(service string, edit ...func(*propose.Request)) propose.Request {
	svc, _ := set().Service(service)
	r := propose.Request{
		Service: svc, Now: now,
		Assessment: compare.Assessment{
			State: compare.Breached, Reason: compare.Burning,
			Objectives: []compare.Objective{
				{ID: "availability", State: compare.Breached, Reason: compare.Burning},
				{ID: "latency", State: compare.Met},
			},
		},
	}
	for _, a := range svc.Remediation.Actions {
		r.Catalogue = append(r.Catalogue, propose.Item{Action: a, LiveKnown: true, Live: propose.Live{
			"version": "v42", "previousVersion": []string{"v41", "v40"}, "replicas": int64(4), "ratio": 0.5,
		}})
	}
	for _, e := range edit {
		e(&r)
	}
	return r
}

// grouped gives the missed objective a worst group, and the catalogue an action
// for one host.
func grouped(name string) func(*propose.Request) {
	return func(r *propose.Request) {
		r.Assessment.Objectives[0].Group = name
		r.Catalogue = append(r.Catalogue, propose.Item{LiveKnown: true, Action: spec.Action{
			Name: "drain", Parameters: []spec.Parameter{{Name: "host", Type: spec.String, Pattern: "[a-z]+"}},
		}})
	}
}

func attempts(ts ...propose.Tried) func(*propose.Request) {
	return func(r *propose.Request) { r.Tried = ts }
}

func attempt(action string, o compare.Outcome, ago time.Duration) propose.Tried {
	return propose.Tried{Action: action, Outcome: o, At: now.Add(-ago), ThisEpisode: true}
}

func TestPropose(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile(filepath.Join("testdata", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	who := propose.Proposer{Kind: "rules"}
	act := func(line, name string, p propose.Parameters) propose.Proposal {
		if p == nil {
			p = propose.Parameters{}
		}
		return propose.Proposal{Kind: propose.KindAction, Action: name, Parameters: p, Proposer: who, Rationale: "rule rules.yaml:" + line}
	}
	word := func(k propose.Kind, why string) propose.Proposal {
		return propose.Proposal{Kind: k, Parameters: propose.Parameters{}, Proposer: who, Rationale: why}
	}
	bad := func(fault string) propose.Proposal {
		return propose.Proposal{Kind: propose.KindMalformed, Parameters: propose.Parameters{}, Proposer: who, Fault: fault}
	}
	earlier := attempt("rollback-flag", compare.OutcomeNoChange, time.Hour)
	earlier.ThisEpisode = false
	cases := map[string]struct {
		reason string
		file   string
		req    propose.Request
		want   propose.Proposal
	}{
		"Previous":     {reason: "The first of the list is the previous value.", req: request("checkout"), want: act("6", "rollback-flag", propose.Parameters{"version": "v41"})},
		"NoChange":     {reason: "What did not help is not repeated unless a rule says so.", req: request("checkout", attempts(attempt("rollback-flag", compare.OutcomeNoChange, time.Minute))), want: word(propose.KindEscalate, "rule rules.yaml:11")},
		"OtherEpisode": {reason: "Tried means in this episode.", req: request("checkout", attempts(earlier)), want: act("6", "rollback-flag", propose.Parameters{"version": "v41"})},
		"Repeated":     {reason: "A rule may propose the same again.", req: request("worker", attempts(attempt("restart", compare.OutcomeNoChange, time.Minute))), want: act("17", "restart", nil)},
		"NewestCounts": {reason: "An older outcome of the same action is history.", req: request("worker", attempts(attempt("restart", compare.OutcomeImproved, time.Minute), attempt("restart", compare.OutcomeNoChange, time.Hour))), want: word(propose.KindNone, "none of the 6 rules matches")},
		"AnyWorsened":  {reason: "Without an action, the newest of any.", req: request("worker", attempts(attempt("restart", compare.OutcomeNoChange, time.Hour), attempt("other", compare.OutcomeWorsened, time.Minute), attempt("restart", compare.OutcomeWorsened, 0))), want: word(propose.KindEscalate, "rule rules.yaml:19")},
		"Reason": {reason: "The service's reason.", req: request("checkout", func(r *propose.Request) {
			r.Assessment = compare.Assessment{State: compare.Unknown, Reason: compare.TrafficLost}
		}), want: word(propose.KindNone, "rule rules.yaml:20")},
		"Empty":            {reason: "No match is none, and says so.", file: "rules: []", req: request("checkout"), want: word(propose.KindNone, "none of the 0 rules matches")},
		"ObjectiveMet":     {reason: "A named objective must be breached.", file: "rules: [{objective: latency, propose: escalate}]", req: request("checkout"), want: word(propose.KindNone, "none of the 1 rules matches")},
		"ObjectiveState":   {reason: "Or be in the state that is named.", file: "rules: [{objective: latency, state: met, propose: escalate}]", req: request("checkout"), want: word(propose.KindEscalate, "rule rules.yaml:1")},
		"ObjectiveReason":  {reason: "With its own reason.", file: "rules: [{objective: availability, reason: recovering, propose: escalate}]", req: request("checkout"), want: word(propose.KindNone, "none of the 1 rules matches")},
		"ServiceState":     {reason: "Without an objective it is the service's.", file: "rules: [{state: unknown, propose: none}, {state: breached, propose: escalate}]", req: request("checkout"), want: word(propose.KindEscalate, "rule rules.yaml:1")},
		"NotInCatalogue":   {reason: "A held action gives way to the next rule.", file: "rules: [{propose: {action: restart}}, {propose: escalate}]", req: request("checkout"), want: word(propose.KindEscalate, "rule rules.yaml:1")},
		"Current":          {reason: "The value that the target has now.", file: "rules: [{propose: {action: scale, parameters: {replicas: current}}}]", req: request("checkout"), want: act("1", "scale", propose.Parameters{"replicas": int64(4)})},
		"EnumHasTheWord":   {reason: "An enum's own text is text.", file: "rules: [{propose: {action: tune, parameters: {pool: previous, ratio: 1}}}]", req: request("checkout"), want: act("1", "tune", propose.Parameters{"pool": "previous", "ratio": int64(1)})},
		"LiveBound":        {reason: "Bounds hold for rules too.", file: "rules: [{propose: {action: scale, parameters: {replicas: 9}}}]", req: request("checkout"), want: bad(`malformed: rule rules.yaml:1: action scale: parameter "replicas": 9 is above the maximum 8 (2 times 4)`)},
		"LiveUnknown":      {reason: "Unknown is no value.", file: "rules: [{propose: {action: rollback-flag, parameters: {version: previous}}}]", req: request("checkout", func(r *propose.Request) { r.Catalogue[0].LiveKnown = false }), want: bad(`malformed: rule rules.yaml:1: action rollback-flag: parameter version: previous is not known: the target's state could not be observed`)},
		"WorstGroup":       {reason: "The host that is missed, and no other.", file: "rules: [{propose: {action: drain, parameters: {host: worst}}}]", req: request("checkout", grouped(`host="a", zone="eu"`)), want: act("1", "drain", propose.Parameters{"host": "a"})},
		"NoWorstGroup":     {reason: "Without groups there is no worst one.", file: "rules: [{propose: {action: drain, parameters: {host: worst}}}]", req: request("checkout", grouped("")), want: bad(`malformed: rule rules.yaml:1: action drain: parameter host: no missed objective has a worst group with a label of that name`)},
		"NoPrevious":       {reason: "Nothing to go back to.", file: "rules: [{propose: {action: rollback-flag, parameters: {version: previous}}}]", req: request("checkout", func(r *propose.Request) { r.Catalogue[0].Live = propose.Live{"previousVersion": []string{}} }), want: bad(`malformed: rule rules.yaml:1: action rollback-flag: parameter version: previous is not known: the observed list previousVersion is empty`)},
		"MissingParameter": {reason: "All are required.", file: "rules: [{propose: {action: scale}}]", req: request("checkout"), want: bad(`malformed: rule rules.yaml:1: action scale: parameter "replicas" is missing`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tc.file
			if text == "" {
				text = string(shipped)
			}
			if diff := cmp.Diff(tc.want, load(t, text).Propose(tc.req)); diff != "" {
				t.Errorf("%s\nPropose(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if err := load(t, string(shipped)).Validate(set()); err != nil {
		t.Errorf("the example fits its documents: %v", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "invalid-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"invalid-no-rules.yaml":    `invalid-no-rules.yaml:2: rules: is required`,
		"invalid-key.yaml":         `invalid-key.yaml:3: rules[0].services: unknown key, did you mean "service"?`,
		"invalid-no-propose.yaml":  `invalid-no-propose.yaml:2: rules[0].propose: is required`,
		"invalid-propose.yaml":     `invalid-propose.yaml:2: rules[0].propose: want none, escalate, or an action with its parameters`,
		"invalid-value.yaml":       `invalid-value.yaml:2: rules[0].propose.parameters.a: want a number, text, true or false`,
		"invalid-words.yaml":       "invalid-words.yaml:2: rules[0].state: unknown state \"broken\", want met, breached or unknown\ninvalid-words.yaml:3: rules[1].tried: is empty: name an action, an outcome or both\ninvalid-words.yaml:4: rules[2].tried.outcome: unknown outcome \"better\", want one of [none pending improved recovered no-change worsened unknown]",
		"invalid-service.yaml":     `invalid-service.yaml:2: rules[0].service: unknown service "chekout", did you mean "checkout"?`,
		"invalid-objective.yaml":   `invalid-objective.yaml:2: rules[0].objective: "availability2" is no objective of service "checkout", did you mean "availability"?`,
		"invalid-action.yaml":      "invalid-action.yaml:3: rules[0].notTried: \"reboot\" is no action of service \"checkout\"\ninvalid-action.yaml:4: rules[0].tried.action: \"restart\" is no action of service \"checkout\"\ninvalid-action.yaml:5: rules[0].propose.action: \"scal\" is no action of service \"checkout\", did you mean \"scale\"?",
		"invalid-anywhere.yaml":    `invalid-anywhere.yaml:2: rules[0].propose.action: "reboot" is no action of any service`,
		"invalid-parameters.yaml":  `invalid-parameters.yaml:2: rules[0].propose.parameters: service "checkout": parameter "size" is not one of action "scale", which takes replicas`,
		"invalid-bound.yaml":       `invalid-bound.yaml:2: rules[0].propose.parameters: service "checkout": parameter "replicas": 21 is above the maximum 20`,
		"invalid-type.yaml":        `invalid-type.yaml:2: rules[0].propose.parameters: service "checkout": parameter "replicas": must be of type integer, not string`,
		"invalid-previous.yaml":    `invalid-previous.yaml:2: rules[0].propose.parameters: service "checkout": parameter replicas: previous needs a parameter with fromState`,
		"invalid-duplicate.yaml":   `invalid-duplicate.yaml:2: rules[0].reason: duplicate key, first given in line 2`,
		"invalid-null-rule.yaml":   `invalid-null-rule.yaml:2: rules[0]: has no value: give it one, or remove the key`,
		"invalid-second-file.yaml": `invalid-second-file.yaml:3: a second document: this file holds exactly one`,
	}
	if len(files) != len(want) {
		t.Errorf("%d files, %d expected messages", len(files), len(want))
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rs, err := rules.Load(spec.File{Name: name, Data: data})
			if err == nil {
				err = rs.Validate(set())
			}
			var faults spec.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("want spec.Faults, got %v", err)
			}
			if diff := cmp.Diff(want[name], err.Error()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rs, err := rules.Load(spec.File{Name: "rules.yaml", Data: data})
		if err != nil {
			var faults spec.Faults
			if rs != nil || !errors.As(err, &faults) {
				t.Fatalf("Load = %v, %v: want no rules and spec.Faults", rs, err)
			}
			return
		}
		_ = rs.Validate(set())
		for _, service := range []string{"checkout", "worker"} {
			r := request(service, attempts(attempt("restart", compare.OutcomeNoChange, time.Minute)))
			p := rs.Propose(r)
			if diff := cmp.Diff(p, rs.Propose(r)); diff != "" {
				t.Fatalf("two answers to one request:\n%s", diff)
			}
			if p.Kind != propose.KindAction {
				continue
			}
			it, ok := r.Catalogue.Item(p.Action)
			if !ok {
				t.Fatalf("proposed %q, which is not in the catalogue", p.Action)
			}
			if err := propose.Check(it, p.Parameters); err != nil {
				t.Fatalf("proposed %+v, which Check refuses: %v", p, err)
			}
		}
	})
}

package decisionlog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/decisionlog"
)

// secretive is an input with a secret in several places.
const secretive = `{"proposal":{"parameters":{"token":"hunter2","replicas":6}},"service":{"name":"checkout","owner":"team-a"},` +
	`"tried":[{"parameters":{"token":"hunter2"}},{"parameters":{"replicas":4}},{"parameters":{"token":"hunter2"}}]}`

// A bundle says what is masked as it would to OPA itself, and the configuration
// says more. A fault of either leaves no input and no result.
func TestMasksOfTheBundle(t *testing.T) {
	const head = "package system.log\n\n"
	everywhere := head + `mask contains "/input/proposal/parameters/token"

mask contains sprintf("/input/tried/%d/parameters/token", [i]) if some i, _ in input.input.tried
`
	tests := map[string]struct {
		reason string
		files  []string
		config []string
		want   string // of the input; "" where it is withheld
		erased []string
		masked []string
		fault  string
	}{
		"None": {"a bundle without masks masks nothing", nil, nil, secretive, nil, nil, ""},
		"Config": {"the configuration's own pointers", nil, []string{"/input/proposal/parameters/token", "/input/tried/*/parameters/token"},
			strings.ReplaceAll(strings.ReplaceAll(secretive, `"token":"hunter2",`, ""), `"token":"hunter2"`, ""),
			[]string{"/input/proposal/parameters/token", "/input/tried/*/parameters/token"}, nil, ""},
		"Bundle": {"the bundle's", []string{"log.rego", everywhere}, nil,
			strings.ReplaceAll(strings.ReplaceAll(secretive, `"token":"hunter2",`, ""), `"token":"hunter2"`, ""),
			[]string{"/input/proposal/parameters/token", "/input/tried/0/parameters/token", "/input/tried/2/parameters/token"}, nil, ""},
		"Both": {"both, the configuration last", []string{"log.rego", head + `mask contains {"op": "upsert", "path": "/input/service/owner", "value": {"was": input.input.service.name}}`}, []string{"/input/tried", "/input/proposal", "/input/service/owner/was"},
			`{"service":{"name":"checkout","owner":{}}}`, []string{"/input/tried", "/input/proposal", "/input/service/owner/was"}, []string{"/input/service/owner"}, ""},
		"Data": {"masks may be data", []string{"data.yaml", "system: {log: {mask: [/input/proposal, /input/tried]}}\n"}, nil,
			`{"service":{"name":"checkout","owner":"team-a"}}`, []string{"/input/proposal", "/input/tried"}, nil, ""},
		"FromData": {"masks may read data", []string{"log.rego", head + `mask contains p if some p in data.secrets`, "data.yaml", "secrets: [/input/proposal, /input/tried]\n"}, nil,
			`{"service":{"name":"checkout","owner":"team-a"}}`, []string{"/input/proposal", "/input/tried"}, nil, ""},
		"Parent": {"rules of package system do too", []string{"log.rego", "package system\n\nlog.mask contains p if some p in [\"/input/proposal\", \"/input/tried\"]"}, nil,
			`{"service":{"name":"checkout","owner":"team-a"}}`, []string{"/input/proposal", "/input/tried"}, nil, ""},
		"Library": {"they may use a library", []string{"log.rego", head + "import data.setpoint.lib.secrets\n\nmask contains p if some p in secrets.paths", "lib.rego", "package setpoint.lib.secrets\n\npaths := {\"/input/proposal\", \"/input/tried\"}"}, nil,
			`{"service":{"name":"checkout","owner":"team-a"}}`, []string{"/input/proposal", "/input/tried"}, nil, ""},
		"Condition": {"they may depend on the result", []string{"log.rego", head + `mask contains "/input" if input.result.verdict == "auto"`}, nil, secretive, nil, nil, ""},
		"Undefined": {"undefined masks nothing, as with OPA", []string{"log.rego", head + `mask := ["/input"] if input.decision_id == "d1"`}, nil, secretive, nil, nil, ""},

		"Builtin":  {"a function that fails", []string{"log.rego", head + `mask contains "/input" if to_number(input.input.proposal.parameters.token) > 3`}, nil, "", nil, nil, "eval_builtin_error at log.rego:3"},
		"Conflict": {"rules that disagree", []string{"log.rego", head + "mask := [\"/input\"]\n\nmask := [\"/result\"]"}, nil, "", nil, nil, "eval_conflict_error"},
		"Type":     {"no set", []string{"log.rego", head + `mask := "/input"`}, nil, "", nil, nil, "is no set"},
		"Pointer":  {"one bad pointer among good ones", []string{"log.rego", head + "mask contains \"/input/proposal\"\n\nmask contains concat(\"\", [\"/inptu/\", input.input.proposal.parameters.token])"}, nil, "", nil, nil, "a mask is no pointer below /input or /result"},
		"Op":       {"an unknown operation", []string{"log.rego", head + `mask contains {"op": "hash", "path": "/input/proposal"}`}, nil, "", nil, nil, "neither remove nor upsert"},
		"Element":  {"a number", []string{"log.rego", head + `mask contains 3`}, nil, "", nil, nil, "neither a path nor an object"},
		"Slow": {"masks that take for ever", []string{"log.rego", head + "mask contains \"/input\" if {\n\tcount([x | some a in numbers.range(1, 4000); some b in numbers.range(1, 4000); x := a * b]) == 1\n}"}, nil,
			"", nil, nil, "eval_cancel_error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decision(policy(t, tt.files...))
			d.Input = []byte(secretive)
			line := logged(t, t.Context(), d, tt.config...)
			var got decisionlog.Event
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatal(err)
			}
			if tt.fault != "" {
				if got.Input != nil || got.Result != nil || strings.Contains(line, "hunter2") || got.Custom == nil || !strings.Contains(got.Custom.MaskFault, tt.fault) {
					t.Errorf("%s: want neither input nor result, for %s:\n%s", tt.reason, tt.fault, line)
				}
				return
			}
			if diff := cmp.Diff(value(t, tt.want), got.Input); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff([][]string{tt.erased, tt.masked}, [][]string{got.Erased, got.Masked}); diff != "" {
				t.Errorf("%s, erased and masked (-want +got):\n%s", tt.reason, diff)
			}
			if got.Result == nil || got.Custom.MaskFault != "" {
				t.Errorf("%s: no result in\n%s", tt.reason, line)
			}
		})
	}
}

// The masks of a decision are those of the policy that made it.
func TestMasksFollowThePolicy(t *testing.T) {
	var to lines
	l, err := decisionlog.Start(decisionlog.Options{}, &to)
	if err != nil {
		t.Fatal(err)
	}
	one := policy(t, "log.rego", "package system.log\n\nmask contains \"/input/service\"")
	two := policy(t, "log.rego", "package system.log\n\nmask contains \"/input/tried\"")
	for _, p := range []*rego.Policy{one, two, one} {
		d := decision(p)
		d.Input = []byte(secretive)
		l.Record(t.Context(), d)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"erased":["/input/service"]`, `"erased":["/input/tried"]`, `"erased":["/input/service"]`} {
		if !strings.Contains(string(to.got[i]), want) {
			t.Errorf("line %d has no %s:\n%s", i, want, to.got[i])
		}
	}
}

// broken panics where it is asked what it was built of.
type broken struct{}

func (broken) Revision() string  { return "broken" }
func (broken) Built() rego.Built { panic("no") }

func TestBrokenPolicy(t *testing.T) {
	line := logged(t, t.Context(), decision(broken{}))
	if strings.Contains(line, `"input":`) || !strings.Contains(line, `"mask_fault":"data.system.log.mask: panic"`) {
		t.Errorf("a policy that panics:\n%s", line)
	}
}

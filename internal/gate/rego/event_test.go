package rego_test

import (
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// What masks the decision log sees an event, which holds the gate input. It is
// held to its type as every other rule, and no annotation lifts that.
func TestInputOfMasks(t *testing.T) {
	const (
		head  = "package system.log\n\n"
		words = "# METADATA\n# scope: package\n# title: what is secret\n# schemas:\n#   - input: {type: object}\n"
	)
	tests := map[string]struct {
		reason string
		files  []string
		want   string
	}{
		"Plain":     {"a mask need not look", []string{"log.rego", head + `mask contains "/input/proposal/parameters/token"`}, ""},
		"Event":     {"it may look at the input within the event", []string{"log.rego", head + `mask contains "/input/service/owner" if input.input.service.name == "a"`}, ""},
		"Lists":     {"it may go through lists", []string{"log.rego", head + `mask contains sprintf("/input/tried/%d/parameters/token", [i]) if some i, _ in input.input.tried`}, ""},
		"Result":    {"the result has any shape", []string{"log.rego", head + `mask contains "/result" if input.result.verdict == "auto"`}, ""},
		"Words":     {"annotations of a package stay", []string{"log.rego", words + head + `mask contains "/input/service/owner" if input.input.service.name == "a"`}, ""},
		"TwoFiles":  {"a package may be in two files", []string{"a.rego", head + `mask contains "/input/service/owner" if input.input.service.name == "a"`, "b.rego", words + head + `mask contains "/input/service/name" if input.path == "setpoint/gate"`}, ""},
		"Else":      {"also in an else", []string{"log.rego", head + "mask := [] if {\n\tinput.input.proposal.undo\n} else := [\"/input\"] if {\n\tinput.input.service.name == \"a\"\n}"}, ""},
		"Typo":      {"a misspelt field is found", []string{"log.rego", head + `mask contains "/input/service/owner" if input.input.service.nam == "a"`}, "log.rego:3: input.input.service.nam is not in the gate input; did you mean name?"},
		"Gate":      {"the gate input is one level down", []string{"log.rego", head + `mask contains "/input/service/owner" if input.service.name == "a"`}, "log.rego:3: input.service.name is not in the gate input"},
		"Lifted":    {"an annotation lifts no type of a mask", []string{"log.rego", words + head + `mask contains "/input" if input.inptu.service.name == "a"`}, "log.rego:8: input.inptu.service.name is not in the gate input; did you mean input?"},
		"Deciding":  {"nor that of a rule that decides", []string{"p2.rego", words + "package setpoint.gate\n\nauto contains \"b\" if input.servce.name == \"a\""}, "p2.rego:8: input.servce.name is not in the gate input; did you mean service?"},
		"Undefined": {"nor does a schema that nobody knows", []string{"p2.rego", strings.Replace(words, "{type: object}", "schema.mine", 1) + "package setpoint.gate\n\nauto contains \"b\" if input.service.name == \"a\""}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.files = append(tt.files, "p.rego", four, "log_test.rego",
				"package system.log_test\n\ntest_mask if data.system.log with input as {\"input\": {\"service\": {\"name\": \"a\"}}}")
			findings := rego.Check(bundle(tt.files...))
			if bad := findings.Errors(); tt.want == "" && len(bad) > 0 || tt.want != "" && (len(bad) == 0 || !strings.HasPrefix(bad[0].String(), tt.want)) {
				t.Errorf("%s: %v, want %s", tt.reason, findings, tt.want)
			}
		})
	}
}

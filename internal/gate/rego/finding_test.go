package rego_test

import (
	"encoding/json"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// A severity that nobody knows is the gravest, in both directions.
func TestSeverity(t *testing.T) {
	for s, word := range map[rego.Severity]string{
		rego.SeverityError: `"error"`, rego.SeverityLint: `"lint"`, rego.SeverityWarning: `"warning"`, 99: `"error"`, -1: `"error"`,
	} {
		if got, err := json.Marshal(s); err != nil || string(got) != word {
			t.Errorf("%d is written %s (%v), want %s", s, got, err, word)
		}
	}
	for word, want := range map[string]rego.Severity{
		`"error"`: rego.SeverityError, `"lint"`: rego.SeverityLint, `"warning"`: rego.SeverityWarning, `"mild"`: rego.SeverityError, `""`: rego.SeverityError,
	} {
		got := rego.SeverityWarning
		if err := json.Unmarshal([]byte(word), &got); err != nil || got != want {
			t.Errorf("%s is read as %s (%v), want %s", word, got, err, want)
		}
	}
	fs := rego.Findings{{Severity: rego.SeverityError}, {Severity: rego.SeverityLint}, {Severity: rego.SeverityWarning}, {}}
	if len(fs.Errors()) != 2 || len(fs.Failing()) != 3 {
		t.Errorf("%d errors, %d failing", len(fs.Errors()), len(fs.Failing()))
	}
}

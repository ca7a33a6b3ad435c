package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// What init writes as a comment is what a person uncomments: without its mark
// every line of it is a key that is known, at its place.
func TestCommentsOfInitAreConfiguration(t *testing.T) {
	t.Parallel()
	text := configText(initPlan{documents: []string{"slo/"}, groups: []string{"@oncall"}}, "http://127.0.0.1:9090")
	mark := regexp.MustCompile(`(?m)^( *)# ((?: *(?:- )?)[a-zA-Z]+:(?: |$).*)$`)
	whole := mark.ReplaceAllString(text, "$1$2")
	whole = strings.Replace(whole, "provider: rules", "provider: openai", 1)
	for _, key := range []string{"\n  endpoints:", "\n    - name: main\n      baseURL:", "apiKeyFile: model.key", "\n  limits: {callsPerHour", "\nprompts:", "\nchanges:", "\n  tokensFile:", "\nreceivers:", "\nexecutors:"} {
		if !strings.Contains(whole, key) {
			t.Errorf("it has no %q:\n%s", key, whole)
		}
	}
	cfg, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(whole)})
	if err != nil {
		t.Fatalf("%v\n%s", err, whole)
	}
	if cfg.Proposer.Limits != config.Default().Proposer.Limits {
		t.Errorf("limits are %+v, and by default %+v", cfg.Proposer.Limits, config.Default().Proposer.Limits)
	}
	for line := range strings.Lines(text) {
		if len(line) > 110 {
			t.Errorf("a line is long: %s", line)
		}
	}
}

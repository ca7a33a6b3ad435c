package config_test

import (
	"testing"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestDecisionLog(t *testing.T) {
	const head = "sources: [{name: main, url: http://127.0.0.1:9090}]\n"
	tests := map[string]struct {
		reason, text string
		path         string
		masks        int
	}{
		"Absent":  {"no log unless somebody wants one", "", "", 0},
		"Path":    {"a path is below setpoint.yaml", "policies: {decisionLog: {path: decisions.jsonl}}", "/etc/setpoint/decisions.jsonl", 0},
		"Whole":   {"all of input, all of result", "policies: {decisionLog: {path: /var/log/d, mask: [/input, /result]}}", "/var/log/d", 2},
		"Below":   {"a parameter has any name", "policies: {decisionLog: {path: /d, mask: [/input/proposal/parameters/token, /input/live/a~1b/0, /result/digest]}}", "/d", 3},
		"Lists":   {"one element, and every one", "policies: {decisionLog: {path: /d, mask: [/input/tried/0/parameters/token, '/input/tried/*/parameters/token', '/input/*']}}", "/d", 3},
		"Escaped": {"an escaped name is the name", "policies: {decisionLog: {path: /d, mask: [/input/proposal/parameters/a~1b~0c]}}", "/d", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(head + tt.text)})
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			c.SetDirectory("/etc/setpoint")
			if tt.path == "" {
				if c.Policies.DecisionLog != nil {
					t.Errorf("%s: got %+v", tt.reason, c.Policies.DecisionLog)
				}
				return
			}
			if got := c.Policies.DecisionLog; got == nil || got.Path != tt.path || len(got.Mask) != tt.masks {
				t.Errorf("%s: got %+v, want %s with %d masks", tt.reason, got, tt.path, tt.masks)
			}
		})
	}
}

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// TestReceiverProgram: a path is one below the folder of setpoint.yaml and stays
// a path, and a word stays a word.
func TestReceiverProgram(t *testing.T) {
	cases := map[string]struct {
		reason, dir, program, want string
	}{
		"Beside":   {"the folder is the working directory: no slash, and PATH would be searched", ".", "./siren.sh", "./siren.sh"},
		"Below":    {"a folder of its own", ".", "bin/siren.sh", "bin/siren.sh"},
		"Above":    {"from the folder above", ".", "../siren.sh", "../siren.sh"},
		"BackHere": {"out of the folder of setpoint.yaml, into the working directory", "conf", "../siren.sh", "./siren.sh"},
		"Relative": {"a relative folder", "conf", "./siren.sh", "conf/siren.sh"},
		"Absolute": {"an absolute folder", "/etc/setpoint", "./siren.sh", "/etc/setpoint/siren.sh"},
		"Whole":    {"a whole path", "conf", "/opt/siren.sh", "/opt/siren.sh"},
		"Word":     {"a word is looked up in PATH", "/etc/setpoint", "siren.sh", "siren.sh"},
		"WordHere": {"wherever setpoint.yaml is", ".", "siren.sh", "siren.sh"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := config.Config{Receivers: []config.Receiver{{Name: "siren", Command: &config.Command{Argv: []string{tc.program, "./loud"}}}}}
			c.SetDirectory(tc.dir)
			if diff := cmp.Diff([]string{tc.want, "./loud"}, c.Receivers[0].Command.Argv); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestApproversInSlack: who could not answer a card is told before there is one.
func TestApproversInSlack(t *testing.T) {
	const (
		here  = "slack:T0123456789/U1"
		slack = "slack: {botTokenFile: b, appTokenFile: a, team: T0123456789, channel: C1}\n"
	)
	cases := map[string]struct {
		reason, slack, group, approvers string
		notes, fault                    string
	}{
		"Here":    {"a person of the workspace", slack, `"` + here + `", "os:alice"`, `"@oncall"`, "", ""},
		"Direct":  {"named without a group", slack, `"os:alice"`, `"` + here + `"`, "", ""},
		"OneOf":   {"somebody else can answer", slack, `"os:alice"`, `"@oncall", "` + here + `"`, "", ""},
		"NoSlack": {"there are no cards", "", `"os:alice"`, `"@oncall"`, "", ""},
		"Nobody":  {"nobody of it", slack, `"os:alice", "token:bob"`, `"@oncall"`, "slo.yaml:23: nobody-in-slack: nobody can answer the cards of shop in Slack: @oncall has nobody of workspace T0123456789; add slack:T0123456789/<user> under approvers in setpoint.yaml", ""},
		"Foreign": {"a document names another workspace", slack, `"` + here + `"`, `"@oncall", "slack:T1/U2"`, "", "slo.yaml:23: spec.approvers[1]: slack:T1/U2 is of another workspace than slack.team, and can never answer: write slack:T0123456789/U2 if that is the person, or remove it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := replace(document, map[string]string{
				"SOURCE": "main", "APPROVER": tc.approvers, "SECRET": "scaler", "RECEIVER": "oncall", "OWNER": "oncall",
				"URL": "http://scaler.internal/shop/scale", "STATUS": "http://scaler.internal/shop/scale",
			})
			set, err := spec.Load([]spec.File{{Name: "slo.yaml", Data: []byte(text)}}, []spec.Reader{openslo.Reader{}})
			if err != nil {
				t.Fatal(err)
			}
			c, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(strings.Replace(validConfig, `"os:alice"`, tc.group, 1) + tc.slack)})
			if err != nil {
				t.Fatal(err)
			}
			notes, fault := "", ""
			for _, n := range c.Unanswered(set) {
				notes += n.Pos.String() + ": " + n.Lint + ": " + n.Text
			}
			if err := c.Validate(set); err != nil {
				fault = err.Error()
			}
			if diff := cmp.Diff([]string{tc.notes, tc.fault}, []string{notes, fault}); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

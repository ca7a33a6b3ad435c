package command_test

import (
	"os"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/execute/command"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestPermits(t *testing.T) {
	dir := t.TempDir()
	marker := dir + "/ran"
	listed, other := script(t, dir, "ok.sh", "touch "+marker), script(t, dir, "other.sh", ":")
	e, err := command.New(command.Options{Allow: []string{listed, dir + "/gone.sh"}, Directory: dir, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		uses   string
		target spec.Target
		want   string
	}{
		"Listed":      {"both are listed", command.Uses, spec.Target{Argv: []string{listed}, StatusArgv: []string{listed}}, ""},
		"NoStatus":    {"one without a status", command.Uses, spec.Target{Argv: []string{listed}}, ""},
		"Other":       {"the program is not listed", command.Uses, spec.Target{Argv: []string{other}}, "executors.command.allow"},
		"OtherStatus": {"nor may its status be told by another", command.Uses, spec.Target{Argv: []string{listed}, StatusArgv: []string{other}}, "executors.command.allow"},
		"Gone":        {"listed, and not there", command.Uses, spec.Target{Argv: []string{dir + "/gone.sh"}}, "cannot be found"},
		"OtherVerb":   {"another executor's action", "webhook.post", spec.Target{Argv: []string{listed}}, "webhook.post"},
	}
	for name, tc := range cases {
		err := e.Permits(spec.Action{Name: "restart", Uses: tc.uses, Target: tc.target})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: got %v, want %q", name, tc.reason, err, tc.want)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
}

package regotest_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

const gatePackage = "package setpoint.gate\n\n"

const four = gatePackage + `# METADATA
# title: Scaling runs by itself
# custom:
#   remedy: set class approval
auto contains "scale" if input.proposal.action == "scale"

approval contains {"reason": "big", "approvers": {"@dba", "@payments"}, "quorum": 2, "expires": "10m"} if {
	input.proposal.parameters.replicas > 5
}

approval contains "old" if input.state.sinceSeconds > 1e6

# METADATA
# title: Never on a frozen day
escalate contains "named" if input.service.name == "cart"

deny contains "no-more" if input.proposal.parameters.replicas > 100
`

// bundle makes a bundle of names and texts in turn.
func bundle(files ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return out
}

func run(t *testing.T, fsys fstest.MapFS) (regotest.Report, error) {
	t.Helper()
	b, err := rego.Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return regotest.Run(context.Background(), b, regotest.Options{})
}

func TestRun(t *testing.T) {
	tests := `package setpoint.gate_test

import data.setpoint.gate

test_named if "named" in gate.escalate with input as {"service": {"name": "cart"}}

test_wrong if "named" in gate.escalate with input as {"service": {"name": "shop"}}

todo_test_later if false

test_error if regex.match("(", "x")

test_cases[name] if {
	some name, n in {"two": 2, "three": 3}
	n == 2
}
`
	r, err := run(t, bundle("p.rego", four, "p_test.rego", tests))
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed != 1 || r.Failed != 3 || r.Skipped != 1 || r.OK() {
		t.Errorf("got %+v", r)
	}
	for i, want := range []struct {
		line int
		text string
	}{{7, "failed"}, {11, "regex"}, {13, "three"}} {
		if f := r.Failures[i]; f.File != "p_test.rego" || f.Line != want.line || !strings.Contains(f.Text, want.text) {
			t.Errorf("failure %d: %+v, want line %d with %q", i, f, want.line, want.text)
		}
	}
	if r.Coverage <= 0 || r.Coverage >= 100 || len(r.Uncovered) == 0 || r.Uncovered[0].File != "p.rego" {
		t.Errorf("coverage %v of %+v", r.Coverage, r.Uncovered)
	}
	if _, err := run(t, bundle("p.rego", "package")); err == nil {
		t.Error("tests of a bundle that does not load were run")
	}
	if r, err := run(t, bundle("p.rego", four)); err != nil || r.OK() {
		t.Errorf("no tests are no passed tests: %+v (%v)", r, err)
	}
}

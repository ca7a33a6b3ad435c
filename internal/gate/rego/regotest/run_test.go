package regotest_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

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
	if r.Passed != 2 || r.Failed != 3 || r.Skipped != 1 || r.OK() || len(r.Tests) != 6 {
		t.Errorf("got %+v", r)
	}
	for i, want := range []struct {
		line       int
		name, text string
	}{{7, "test_wrong", "failed"}, {11, "test_error", "regex"}, {13, "test_cases[three]", "failed"}} {
		f := r.Failures[i]
		if f.File != "p_test.rego" || f.Line != want.line || f.Name != "setpoint.gate_test."+want.name || !strings.Contains(f.Text, want.text) {
			t.Errorf("failure %d: %+v, want line %d with %q", i, f, want.line, want.text)
		}
	}
	if r.Coverage <= 0 || r.Coverage >= 100 || len(r.Uncovered) == 0 || r.Uncovered[0].File != "p.rego" {
		t.Errorf("coverage %v of %+v", r.Coverage, r.Uncovered)
	}
	for _, one := range r.Tests {
		if one.FailedAt != nil || one.Trace != "" || one.Output != "" {
			t.Errorf("a reload pays for detail: %+v", one)
		}
	}
	if _, err := run(t, bundle("p.rego", "package")); err == nil {
		t.Error("tests of a bundle that does not load were run")
	}
	if r, err := run(t, bundle("p.rego", four)); err != nil || r.OK() {
		t.Errorf("no tests are no passed tests: %+v (%v)", r, err)
	}
}

// A test that goes through the cases of an empty list proves nothing.
func TestNoCaseIsNoPass(t *testing.T) {
	tests := "package setpoint.gate_test\n\ntest_each[name] if some name, n in {}\n"
	r, err := run(t, bundle("p.rego", four, "p_test.rego", tests))
	if err != nil || r.OK() || r.Skipped != 1 || r.Tests[0].Text != "no case ran" {
		t.Errorf("got %+v (%v)", r, err)
	}
}

func TestRunChoosesAndStops(t *testing.T) {
	tests := `package setpoint.gate_test

test_one if 1 == 1

test_two if 1 == 2

test_slow if {
	some x in numbers.range(1, 100000)
	some y in numbers.range(1, 100000)
	x + y == 0
}
`
	b, err := rego.Read(bundle("p.rego", four, "p_test.rego", tests))
	if err != nil {
		t.Fatal(err)
	}
	r, err := regotest.Run(context.Background(), b, regotest.Options{Run: regexp.MustCompile(`_test\.test_o`)})
	if err != nil || r.Passed != 1 || len(r.Tests) != 1 {
		t.Errorf("one of two: %+v (%v)", r, err)
	}
	o := regotest.Options{Run: regexp.MustCompile(`slow`), Timeout: 50 * time.Millisecond, Detail: true}
	r, err = regotest.Run(context.Background(), b, o)
	if err != nil || r.Failed != 1 || r.Tests[0].Result != regotest.Errored || !strings.Contains(r.Tests[0].Text, "cancel") {
		t.Errorf("a test that takes too long: %+v (%v)", r, err)
	} else if r.Tests[0].Seconds > 0.9*regotest.DefaultTimeout.Seconds() {
		t.Errorf("it was stopped after %v s, not after 50 ms", r.Tests[0].Seconds)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := regotest.Run(ctx, b, regotest.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that somebody ended gives %v", err)
	}
}

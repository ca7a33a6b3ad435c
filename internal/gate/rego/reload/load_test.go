package reload_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
)

func TestLoad(t *testing.T) {
	failing := with(policy("a"), "gate_test.rego", "package setpoint.gate_test\n\ntest_one if false\n\ntest_two if false\n")
	cases := map[string]struct {
		reason       string
		files        map[string]string
		rules        reload.Rules
		fault, whole string
		warning      string
	}{
		"Good":          {"", policy("a"), reload.Rules{}, "", "", ""},
		"Failing":       {"tests decide", failing, reload.Rules{}, "gate_test.rego:3: test setpoint.gate_test.test_one failed; and 1 more", "2 tests of the policy failed, first ", ""},
		"FailingShadow": {"what binds nobody may be unfinished", failing, reload.Rules{Lenient: true}, "", "", "gate_test.rego:3: "},
		"BrokenShadow":  {"but has to compile", with(policy("a"), "gate.rego", "package"), reload.Rules{Lenient: true}, "gate.rego:1: ", "policy is not loaded: gate.rego:1: ", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := reload.Load(t.Context(), mapFS(tc.files), tc.rules)
			var f *reload.Fault
			if errors.As(err, &f) != (tc.fault != "") || (l.Policy != nil) != (tc.fault == "") || (l.Warning != nil) != (tc.warning != "") {
				t.Fatalf("%s: policy %v, warning %v, error %v", tc.reason, l.Policy != nil, l.Warning, err)
			}
			if f != nil && (!strings.Contains(f.Brief(), tc.fault) || !strings.Contains(f.Error(), tc.whole)) {
				t.Errorf("%s: in brief %q, whole %q", tc.reason, f.Brief(), f)
			}
			if tc.warning != "" && !strings.Contains(l.Warning.Brief(), tc.warning) {
				t.Errorf("%s: warning %q", tc.reason, l.Warning.Brief())
			}
		})
	}
}

// endless is a test that does not end in any time that somebody waits.
const endless = `package setpoint.gate_test

test_endless if {
	n := numbers.range(1, 4000)
	count([1 | some x in n; some y in n; some z in n; x * y == z + 1]) > 0
}
`

// A test that hangs, or an agent that stops, must not hold up the watcher.
func TestTestsAreBounded(t *testing.T) {
	files := mapFS(with(policy("a"), "endless_test.rego", endless))
	began := time.Now()
	_, err := reload.Load(t.Context(), files, reload.Rules{TestsWithin: 200 * time.Millisecond})
	var f *reload.Fault
	if !errors.As(err, &f) || !strings.Contains(f.Brief(), "longer than 200ms") {
		t.Errorf("a test that hangs: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := reload.Load(ctx, files, reload.Rules{}); err == nil || errors.As(err, &f) {
		t.Errorf("an agent that stops says nothing of the bundle: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

package spec_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestActionTarget(t *testing.T) {
	cases := map[string]struct {
		reason    string
		action    spec.Action
		executor  string
		mark      spec.Mark
		canonical string
	}{
		"Marked": {
			reason:   "A statusURL makes the effect one that can be asked for; the query is no part of the place.",
			action:   spec.Action{Uses: "webhook.post", Target: spec.Target{URL: "http://a.example/b?c=d", StatusURL: "http://a.example/b"}},
			executor: "webhook", mark: spec.MarkQuery, canonical: "webhook http://a.example/b",
		},
		"Unmarked": {
			reason:   "Without one nothing can be asked, not even with dedup.",
			action:   spec.Action{Uses: "webhook.post", Target: spec.Target{URL: "http://a.example/b", Dedup: true}},
			executor: "webhook", mark: spec.MarkUnmarked, canonical: "webhook http://a.example/b",
		},
		"NoVerb": {
			reason:   "An executor without a verb is itself; a URL that is none locks as it is.",
			action:   spec.Action{Uses: "webhook", Target: spec.Target{URL: "http://a b/"}},
			executor: "webhook", mark: spec.MarkUnmarked, canonical: "webhook http://a b/",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := []string{tc.action.Executor(), string(tc.action.Mark()), tc.action.Canonical()}
			if diff := cmp.Diff([]string{tc.executor, string(tc.mark), tc.canonical}, got); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestModeWords(t *testing.T) {
	for _, m := range []spec.Mode{spec.Observe, spec.Suggest, spec.Approval, spec.Auto} {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back spec.Mode
		if err := json.Unmarshal(text, &back); err != nil || back != m {
			t.Errorf("%s came back as %v, %v", text, back, err)
		}
	}
	if got := spec.Mode(9).String(); got != "mode(9)" {
		t.Errorf("a mode that is none is %q", got)
	}
}

func TestServiceAction(t *testing.T) {
	svc := spec.Service{Remediation: spec.Remediation{Actions: []spec.Action{
		{Name: "restart", Timeout: 10 * time.Second, MaxLateness: 30 * time.Second},
	}}}
	if a, ok := svc.Action("restart"); !ok || a.Horizon() != 40*time.Second {
		t.Errorf("restart: %+v, %t", a, ok)
	}
	if _, ok := svc.Action("rollback"); ok {
		t.Error("an action that is not declared was found")
	}
}

func TestFaultOrder(t *testing.T) {
	at := func(file string, line int, path string) spec.Fault {
		return spec.Fault{Pos: spec.Position{File: file, Line: line}, Path: path, Text: "x"}
	}
	err := spec.Faults{at("b", 1, ""), at("a", 2, "z"), at("a", 2, "y"), at("a", 1, ""), at("a", 0, "")}.Err()
	want := "a: x\na:1: x\na:2: y: x\na:2: z: x\nb:1: x"
	if diff := cmp.Diff(want, message(err)); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	if err := (spec.Faults{}).Err(); err != nil {
		t.Errorf("no fault is no error, got %v", err)
	}
}

// TestOneTargetUnderManyNames: two documents that spell one address otherwise
// share its lock.
func TestOneTargetUnderManyNames(t *testing.T) {
	of := func(url string) string {
		return spec.Action{Uses: "webhook.post", Target: spec.Target{URL: url}}.Canonical()
	}
	const want = "webhook http://scaler.internal/checkout"
	for _, same := range []string{
		"http://scaler.internal/checkout", "http://Scaler.Internal/checkout", "HTTP://scaler.internal:80/checkout", "http://scaler.internal./checkout",
		"http://scaler.internal/%63heckout", "http://scaler.internal//checkout", "http://scaler.internal/x/../checkout", "http://scaler.internal/./checkout/",
		"http://u:p@scaler.internal/checkout?dry=1#x",
	} {
		if got := of(same); got != want {
			t.Errorf("%s is %q, want %q", same, got, want)
		}
	}
	for _, other := range []string{
		"https://scaler.internal/checkout", "http://scaler.internal:8080/checkout", "http://scaler.internal/Checkout", "http://scaler/checkout", "http://scaler.internal:443/checkout",
	} {
		if of(other) == want {
			t.Errorf("%s is another target", other)
		}
	}
	if got := of("http://[::1]:80/a%2Fb"); got != "webhook http://[::1]/a/b" {
		t.Errorf("got %q", got)
	}
}

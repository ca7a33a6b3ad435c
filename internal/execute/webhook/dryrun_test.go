package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// probe is what doctor sends.
func probe(a spec.Action) webhook.Probe {
	a.Target.Dedup = true
	return webhook.Probe{Service: "checkout", Action: a, Key: webhook.ProbePrefix + "1-1", Parameters: six}
}

// The same dry run twice: an actuator that keeps the contract answers the
// second one as a duplicate, and nothing happens.
func TestDryRunTwice(t *testing.T) {
	cases := map[string]struct {
		reason string
		dedup  bool
		// status is that of the second answer.
		status    int
		duplicate bool
	}{
		"Dedup": {"what remembers keys answers 409", true, http.StatusConflict, true},
		"None":  {"what does not answers like the first time", false, http.StatusOK, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act, err := executetest.NewActuator(executetest.ActuatorOptions{Secret: secret, Dedup: tc.dedup, State: map[string]any{"replicas": 4}})
			if err != nil {
				t.Fatal(err)
			}
			e, a := serve(t, act.ServeHTTP)
			first, err := e.DryRun(t.Context(), probe(a))
			if err != nil || first.Status != http.StatusOK || first.Result != "applied" || first.Duplicate {
				t.Errorf("%s: the first is %+v, %v", tc.reason, first, err)
			}
			second, err := e.DryRun(t.Context(), probe(a))
			if err != nil || second.Status != tc.status || second.Duplicate != tc.duplicate {
				t.Errorf("%s: the second is %+v, %v", tc.reason, second, err)
			}
			if got := act.State()["replicas"]; got != 4 || len(act.Effects()) != 0 {
				t.Errorf("%s: replicas are %v", tc.reason, got)
			}
			for _, r := range act.Journal() {
				if !r.DryRun || !r.Signed || r.Key != webhook.ProbePrefix+"1-1" || r.Digest == "" {
					t.Errorf("sent %+v", r)
				}
			}
		})
	}
}

// Nothing leaves that an actuator could take for an action.
func TestDryRunRefuses(t *testing.T) {
	real := gate.KeyOf("doctor", gate.WindowAt(now, time.Minute))
	cases := map[string]struct {
		reason string
		change func(*webhook.Probe)
		want   string
	}{
		"RealKey":   {"the key of a window", func(p *webhook.Probe) { p.Key = real }, "must begin with"},
		"NoKey":     {"no key at all", func(p *webhook.Probe) { p.Key = "" }, "must begin with"},
		"NoDedup":   {"nobody promised that it knows a dry run", func(p *webhook.Probe) { p.Action.Target.Dedup = false }, "dedup: true"},
		"NoTimeout": {"it might never end", func(p *webhook.Probe) { p.Action.Timeout = 0 }, "no timeout"},
		"OtherURL":  {"a URL that is not listed", func(p *webhook.Probe) { p.Action.Target.URL = "http://127.0.0.1:1/x" }, "executors.webhook.allow"},
		"Status":    {"nor may its status be elsewhere", func(p *webhook.Probe) { p.Action.Target.StatusURL = "http://127.0.0.1:1/x" }, "executors.webhook.allow"},
		"NoSecret":  {"an unsigned one", func(p *webhook.Probe) { p.Action.Target.Secret = "other" }, `secret "other"`},
		"OtherVerb": {"another executor's action", func(p *webhook.Probe) { p.Action.Uses = "command.run" }, "command.run"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, a := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s: %s was sent", tc.reason, r.Method) })
			p := probe(a)
			tc.change(&p)
			if got, err := e.DryRun(t.Context(), p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// No redirect is followed: a dry run must not arrive where nobody allowed it.
func TestDryRunFollowsNoRedirect(t *testing.T) {
	e, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	got, err := e.DryRun(t.Context(), probe(a))
	if err != nil || got.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %+v, %v", got, err)
	}
}

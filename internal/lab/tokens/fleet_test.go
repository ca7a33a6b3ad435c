package tokens_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/lab/fleet"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// asked is what a model is sent about the first of so many services, by the
// whole loop over a server that holds all of them.
func asked(t *testing.T, f *fleet.Fleet, url string, n int) propose.Prompt {
	t.Helper()
	set, err := f.Options.Set()
	if err != nil {
		t.Fatal(err)
	}
	svc, _ := documents(t, root+"slo").Service("checkout")
	set.Services = set.Services[:n]
	set.Services[0].Remediation.Actions = svc.Remediation.Actions
	agent, err := fleet.NewAgent(t.Context(), fleet.AgentOptions{Dir: t.TempDir(), URL: url, Set: set, Clock: f.Clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close() })
	r, err := agent.Question(t.Context(), fleet.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if r.Assessment.State != compare.Breached {
		t.Fatalf("the service is %s (%s), so little is asked", r.Assessment.State, r.Assessment.Why())
	}
	p, err := shipped(t).Fit(r, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFleetSize: what is asked about a service does not depend on how many
// others there are.
func TestFleetSize(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a fleet of 2,000 services")
	}
	t.Parallel()
	const many = 2000
	f, err := fleet.New(fleet.Options{Dir: t.TempDir(), Services: many, Broken: 1, Interval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	server := httptest.NewServer(f.Engine.Handler())
	t.Cleanup(server.Close)
	alone, among := asked(t, f, server.URL, 1), asked(t, f, server.URL, many)
	t.Logf("alone %d tokens, among 2,000 %d", count(t, alone.System, alone.User), count(t, among.System, among.User))
	if diff := cmp.Diff(alone, among); diff != "" {
		t.Errorf("-alone, +among 2,000:\n%s", diff)
	}
}

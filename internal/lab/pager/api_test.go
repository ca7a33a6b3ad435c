package pager_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/alertmanager/api/v2/client"

	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
)

// TestAPI reads what is held with Alertmanager's own generated client, which
// validates the answers.
func TestAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	api := client.New(httptransport.New(u.Host, "/api/v2", []string{u.Scheme}), strfmt.Default)
	am := w.alertmanager(t)
	send(t, am, page("a"))
	send(t, am, page("b"))
	w.pass(time.Minute)
	send(t, am, ended(page("b"), w.clock()))

	got, err := api.Alert.GetAlerts(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Payload.Validate(strfmt.Default); err != nil {
		t.Errorf("the answer is not valid: %v", err)
	}
	if len(got.Payload) != 1 {
		t.Fatalf("%d alerts, want the one that fires", len(got.Payload))
	}
	a := got.Payload[0]
	if diff := cmp.Diff(page("a").Labels(), map[string]string(a.Labels)); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(after(alertmanager.Lasts), time.Time(*a.EndsAt).UTC()); diff != "" {
		t.Errorf("endsAt: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(start.Add(-time.Minute), time.Time(*a.StartsAt).UTC()); diff != "" {
		t.Errorf("startsAt: -want, +got:\n%s", diff)
	}

	status, err := api.General.GetStatus(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := status.Payload.Validate(strfmt.Default); err != nil {
		t.Errorf("the status is not valid: %v", err)
	}
	if v := *status.Payload.VersionInfo.Version; v != "setpoint-lab pager" {
		t.Errorf("it says that it is %q", v)
	}
	if code, body := call(t, http.MethodGet, w.url+"/api/v2/alerts?active=false", ""); code != 200 || body != "[]\n" {
		t.Errorf("HTTP %d %s, want no alert", code, body)
	}
}

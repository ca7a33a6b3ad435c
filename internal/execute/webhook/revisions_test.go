package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// A status answer may list what was rolled out, beside the state.
func TestObserveRevisions(t *testing.T) {
	e, a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"known":false,"state":{"replicas":4},"revisions":[{"version":"v42","time":"2026-11-30T12:00:00Z"}]}`))
	})
	a.Target.StatusURL = a.Target.URL
	o := e.Observe(t.Context(), a, "checkout:1795939200-600")
	want := []measure.Change{{At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), What: "deploy", Version: "v42"}}
	if diff := cmp.Diff(want, o.Revisions); diff != "" || !o.Known || o.State["replicas"] != int64(4) {
		t.Errorf("%+v (-want +got):\n%s", o, diff)
	}
}

package command_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// A status program may list what was rolled out, beside the state.
func TestObserveRevisions(t *testing.T) {
	b := program(t, `echo '{"known":false,"state":{"replicas":4},"revisions":[{"version":"v42","time":"2026-11-30T12:00:00Z"}]}'`)
	b.options.EnvAllow = []string{"PATH"}
	o := b.executor(t).Observe(t.Context(), b.action, "checkout:1795939200-600")
	want := []measure.Change{{At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), What: "deploy", Version: "v42"}}
	if diff := cmp.Diff(want, o.Revisions); diff != "" || !o.Known || o.State["replicas"] != int64(4) {
		t.Errorf("%+v (-want +got):\n%s", o, diff)
	}
}

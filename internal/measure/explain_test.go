package measure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestQueriesSayHowOftenTheyAreAsked(t *testing.T) {
	o := counting(func(o *spec.Objective) { o.BurnRates = spec.DefaultBurnRates() })
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := map[string]string{}
	for _, q := range measure.Pass(spec.Service{Name: "checkout", Objectives: []spec.Objective{o}}, at) {
		what := spec.FormatDuration(q.ID.Window)
		switch {
		case q.Covers() > 0:
			what = "covers " + spec.FormatDuration(q.Covers())
		case q.ID.TotalOnly:
			what = "hour before"
		}
		got[what] = fmt.Sprintf("%s counted %t", q.Every(30*time.Second), q.Counted())
	}
	want := map[string]string{
		"5m": "30s counted false", "30m": "30s counted false", "1h": "1m0s counted false", "6h": "6m0s counted false",
		"30d": "12h0m0s counted true", "covers 1h": "10m0s counted false", "covers 6h": "1h0m0s counted false",
		"covers 30d": "6h0m0s counted false", "hour before": "0s counted false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each sweep, at a sixtieth of the window, or only when it is called for (-want +got):\n%s", diff)
	}
	for _, q := range measure.At("checkout", o, time.Hour, at) {
		if q.Every(time.Minute) != 0 || q.Covers() != 0 {
			t.Errorf("a window of its own is asked once: %+v", q.ID)
		}
	}
}

package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// TestRootOfADiamond: whichever way leads to the bottom, one root is one cause
// and one page.
func TestRootOfADiamond(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 9, broken)
	on := func(i int, names ...string) { w.set.Services[i].Remediation.DependsOn = names }
	on(0, "s1", "s2")
	on(1, "s3")
	on(2, "s3")
	w.rule = func([]byte) gate.Ruling { return gate.Ruling{Revision: "test"} }
	w.cfg.Limits.StormMin = 9
	w.start()
	w.sweeps(12 * time.Minute)
	for _, name := range []string{"s0", "s1", "s2", "s3"} {
		broken[name] = 0.5
	}
	w.sweeps(35 * time.Minute)
	if got := w.pager.paged(); !slices.Equal(got, []string{"s3"}) {
		t.Errorf("pages: %s", w.pager.reasons())
	}
	if got := w.pager.reasons(); !strings.Contains(got, "waiting for it: s0, s1, s2") {
		t.Errorf("pages: %s", got)
	}
}

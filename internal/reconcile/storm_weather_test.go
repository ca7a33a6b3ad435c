package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// stormOf breaks the first of the services of a world of n.
func stormOf(t *testing.T, n, red int) (w *world, broken map[string]float64) {
	t.Helper()
	broken = map[string]float64{}
	w = manyOf(t, n, broken)
	w.start()
	w.sweeps(12 * time.Minute)
	for i := range red {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	w.sweeps(20 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOn {
		t.Fatalf("brake %+v", at)
	}
	return w, broken
}

// paged are the services with an open page of their own, sorted.
func (p *pager) paged() []string {
	var out []string
	for _, page := range p.open() {
		if page.Service != "" {
			out = append(out, page.Service)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatBreaksInALongStorm: a brake that a few services keep on for hours, and
// a storm that rages for hours, hide nothing that breaks later.
func TestWhatBreaksInALongStorm(t *testing.T) {
	for name, heals := range map[string]int{"a few are left": 15, "it rages": 0} {
		t.Run(name, func(t *testing.T) {
			w, broken := stormOf(t, 40, 20)
			for i := range heals {
				broken[fmt.Sprintf("s%d", i)] = 0
			}
			w.sweeps(time.Hour)
			if at := w.stormPhase(); at.Phase != ledger.StormOn {
				t.Fatalf("brake %+v", at)
			}
			broken["s39"] = 0.9
			w.sweeps(25 * time.Minute)
			if !slices.Contains(w.pager.paged(), "s39") {
				t.Errorf("nobody hears of s39: %s", w.pager.reasons())
			}
			if n := len(w.actuator.Effects()); n != 0 {
				t.Errorf("%d effects in a storm", n)
			}
		})
	}
}

// TestStormIsNoCover: what is unknown for a reason of its own is no weather, so
// the storm's page does not name it and its own is opened.
func TestStormIsNoCover(t *testing.T) {
	w := manyOf(t, 12, nil)
	since := w.now.Add(12 * time.Minute)
	w.truth = func(service string, at time.Time) float64 {
		if service == "s11" || at.Before(since) {
			return 0
		}
		return 0.5
	}
	w.dark = func(service string, at time.Time) measure.Reason {
		if service == "s11" && !at.Before(since) {
			return measure.NoData
		}
		return ""
	}
	w.start()
	w.sweeps(40 * time.Minute)
	if at := w.stormPhase(); at.Phase != ledger.StormOn {
		t.Fatalf("brake %+v", at)
	}
	if got := w.pager.reasons(); !slices.Equal(w.pager.paged(), []string{"s11"}) || !strings.Contains(got, escalate.Blind) {
		t.Errorf("pages: %s", got)
	}
}

// TestStormThatGrows: receivers that keep what they were sent are told again of
// those that joined, and not of each when it does.
func TestStormThatGrows(t *testing.T) {
	w, broken := stormOf(t, 40, 14)
	before := len(w.pager.sent)
	for i := range 16 {
		broken[fmt.Sprintf("s%d", 14+i)] = 0.5
		w.sweeps(step30)
	}
	w.sweeps(5 * time.Minute)
	if n := len(w.pager.sent) - before; n == 0 || n > 3 {
		t.Errorf("%d messages of 16 that joined", n)
	}
	if got := w.pager.open()["storm"].Summary; !strings.Contains(got, "of 40 services are breached") {
		t.Errorf("the page says %s", got)
	}
}

// TestStormAfterARestart: a process that has measured nothing yet pages nobody
// anew of what the storm's page tells of.
func TestStormAfterARestart(t *testing.T) {
	w, _ := stormOf(t, 12, 9)
	w.lost = func(string) string { return "main" } // it measures, and learns nothing
	w.restart()
	w.sweeps(2 * time.Minute)
	w.lost = nil
	w.sweeps(10 * time.Minute)
	if got := w.pager.paged(); len(got) != 0 {
		t.Errorf("pages: %s", w.pager.reasons())
	}
}

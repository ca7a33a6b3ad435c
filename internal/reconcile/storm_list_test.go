package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// stormOf200 is a fleet of that size, in memory, before anything happens to it.
func stormOf200(t *testing.T) (w *world, broken map[string]float64, sweep func(times int)) {
	t.Helper()
	broken = map[string]float64{}
	w = manyOf(t, 200, broken)
	w.truth = func(service string, _ time.Time) float64 { return broken[service] }
	for i := range w.set.Services {
		w.set.Services[i].Remediation.HoldFor = time.Minute
	}
	r := w.made(func(o *reconcile.Options) { o.Store = inMemory(w)() })
	w.r = r
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sweep = func(times int) {
		for range times {
			r.Sweep(t.Context())
			w.pass(time.Minute)
		}
	}
	sweep(3)
	return w, broken, sweep
}

// listed are the services that the storm's page names in its list.
func (w *world) listed() (names []string) {
	_, list, _ := strings.Cut(w.pager.open()["storm"].Text, "Missed now (")
	for _, line := range strings.Split(list, "\n")[1:] {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		names = append(names, name)
	}
	return names
}

// TestStormOf200: one page, which lists all of them with what is measured, and
// nobody else's; nothing is claimed or asked; and what stays red when the storm has
// passed gets a page of its own.
func TestStormOf200(t *testing.T) {
	w, broken, sweep := stormOf200(t)
	for i := range 150 {
		broken[fmt.Sprintf("s%d", i)] = 0.5
	}
	sweep(2)
	if n := len(w.pager.sent); n != 1 || len(w.listed()) != 150 {
		t.Errorf("%d messages, %d services are listed", n, len(w.listed()))
	}
	for i := 150; i < 200; i++ {
		broken[fmt.Sprintf("s%d", i)] = 0.2
	}
	sweep(12)
	open := w.pager.open()
	if len(open) != 1 || len(w.pager.sent) > 3 {
		t.Errorf("%d pages in %d messages: %.2000s", len(open), len(w.pager.sent), w.pager.reasons())
	}
	seen := map[string]bool{}
	for _, name := range w.listed() {
		seen[name] = true
	}
	p := open["storm"]
	if len(seen) != 200 || !seen["s0"] || !seen["s199"] {
		t.Errorf("%d services are listed", len(seen))
	}
	if len(p.Summary) > 250 || !strings.Contains(p.Summary, "200 of 200 services are breached") || !strings.Contains(p.Summary, "and 194 more") {
		t.Errorf("summary: %s", p.Summary)
	}
	if !strings.Contains(p.Text, "s199: availability 20 % errors over 5m, 1 % allowed, since 2090-11-29 03:05:00 UTC") {
		t.Errorf("text: %.500s", p.Text)
	}
	if n := w.asked.Load(); n != 0 || len(w.actuator.Effects()) != 0 {
		t.Errorf("%d proposals and %d effects in a storm", n, len(w.actuator.Effects()))
	}
	w.r.View(func(s *ledger.State) {
		if len(s.Effects) != 0 || len(s.Tickets) != 0 || len(s.Cards) != 0 {
			t.Errorf("%d claims, %d tickets, %d cards", len(s.Effects), len(s.Tickets), len(s.Cards))
		}
	})

	for i := 3; i < 200; i++ {
		broken[fmt.Sprintf("s%d", i)] = 0
	}
	sweep(25)
	if _, still := w.pager.open()["storm"]; still {
		t.Error("the storm's page is still open")
	}
	if got := w.pager.paged(); strings.Join(got, " ") != "s0 s1 s2" {
		t.Errorf("pages of their own: %v", got)
	}
}

package reconcile

import (
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// TestSourcePageGrows: who was told that one service is blind is told when many
// are, and not each time that another one takes the place of the first.
func TestSourcePageGrows(t *testing.T) {
	r := &Reconciler{Desk: &Desk{book: newBook(nil)}}
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	digest := func(names ...string) string {
		out := map[string]escalate.Page{}
		r.sourcePages(out, map[string][]string{"main": names}, now)
		return out["source/main"].ContentDigest()
	}
	if digest("a") == digest("a", "b") {
		t.Error("twice as many blind services are no news")
	}
	if digest("a", "b") != digest("a", "c") {
		t.Error("another blind service in the place of one is news")
	}
}

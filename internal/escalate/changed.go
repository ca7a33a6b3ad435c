package escalate

import (
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

const (
	// maxChanges is how many changes a page shows; a page is read on a phone.
	maxChanges = 3
	// maxChangeShown is how much of a reporter's words stands in it, in characters.
	maxChangeShown = 100
)

// changed are the newest changes of the service. A policy asks because of them,
// so whoever is asked must see which they are. The words are a reporter's: they
// stand in quotes, and make no link and no command.
func changed(f PageFacts) []string {
	var lines []string
	for i, c := range f.Changes {
		if i == maxChanges {
			return append(lines, fmt.Sprintf("… and %d more: setpoint get changes --service %s", len(f.Changes)-i, approve.Argument(f.Service.Name)))
		}
		lines = append(lines, fmt.Sprintf("%s at %s, %s", approve.Quote(c.What+" "+c.Version, maxChangeShown+2), approve.Instant(c.At), ago(c.At, f.Now)))
	}
	return lines
}

// ago is how long ago something was; a reporter's clock may be ahead of ours.
func ago(t, now time.Time) string {
	if t.After(now) {
		return "just now"
	}
	return approve.Age(now.Sub(t)) + " ago"
}

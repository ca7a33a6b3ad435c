package approve

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Broken is one line: what is broken, by how much, as measured, and since when.
func Broken(service string, a compare.Assessment, since, now time.Time) string {
	return service + " " + string(a.State) + " " + since.String() + now.String()
}

// Would is one line: what a proposal would do to which target.
func Would(svc spec.Service, p propose.Proposal) string {
	return "would do: " + p.Action + svc.Name
}

// Did is one line: what was done, and what was measured after it.
func Did(t propose.Tried) string { return "did: " + t.Action }

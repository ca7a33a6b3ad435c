// Package cut gives documents with every duration cut by one factor, so that a
// demo shows in minutes what takes hours. Absent durations are written out
// first, since a default cannot be cut.
package cut

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Options are how to cut.
type Options struct {
	// Factor divides every duration but approvalFor and permitTTL.
	Factor int
	// BurnRate replaces the page pairs by one, after the cut.
	BurnRate spec.BurnRate
	// Targets replaces the scheme and host of every action's URLs.
	Targets string
	// Actions are changes of single actions by service and name, e.g. a
	// cooldown, laid over after the cut.
	Cooldown map[string]time.Duration
}

// Files returns the files with their durations cut. Everything else, comments
// included, stays as it is where it can.
func Files(files []spec.File, o Options) ([]spec.File, error) { panic("lab") }

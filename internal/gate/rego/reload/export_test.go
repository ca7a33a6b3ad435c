package reload

import (
	"context"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Burst is how long the notifier gathers events.
const Burst = burst

// CountLoads counts how often a watcher compiles and tests a bundle.
func CountLoads(w *Watcher) *int {
	n := new(int)
	w.load = func(ctx context.Context, b rego.Bundle, r Rules) (Loaded, error) {
		*n++
		return load(ctx, b, r)
	}
	return n
}

package alertmanager

import (
	"context"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// SilencesFor returns the active silences that hold a page: for now those of
// its service.
func (r *Receiver) SilencesFor(ctx context.Context, p escalate.Page) ([]gate.Hold, error) {
	return r.Silences(ctx, p.Service)
}

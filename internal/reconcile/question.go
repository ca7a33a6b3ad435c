package reconcile

import (
	"context"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// Question is what a proposer would be asked about a service now, whatever
// state it is in. It measures, and writes and asks nothing.
func (r *Reconciler) Question(ctx context.Context, service string) (propose.Request, error) {
	set := r.Set()
	svc, ok := set.Service(service)
	if !ok {
		return propose.Request{}, fmt.Errorf("service %q: %w; setpoint get services lists them", service, ErrNotFound)
	}
	now := r.o.Now()
	p := r.newPass(r.lookWith(ctx, set, set.Services, now, (*watch).all), svc, now)
	p.dry = true
	p.measure(ctx)
	if err := p.fold(ctx); err != nil {
		return propose.Request{}, err
	}
	p.step = step.Step{Kind: step.Propose, Key: gate.KeyOf(svc.Name, p.past.window)}
	p.observe(ctx)
	p.readChanges()
	request := p.request()
	request.Breakdowns = p.breakdowns(ctx)
	return request, nil
}

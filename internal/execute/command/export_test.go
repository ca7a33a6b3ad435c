package command

import (
	"context"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Fill is fill, for values that the gate would stop before they came here.
var Fill = fill

// RunUngated runs a program as Execute does, without a permit.
func (e *Executor) RunUngated(ctx context.Context, argv []string, p propose.Parameters) (execute.Receipt, error) {
	argv, err := fill(argv, p)
	if err != nil {
		return execute.Refused(e.now(), err)
	}
	r, err := e.prepare(ctx, argv)
	if err != nil {
		return execute.Refused(e.now(), err)
	}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	return e.receipt(r.run(ctx)), nil
}

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Observe runs the action's statusArgv for a key, under the same bounds as the
// action. Whatever is not exit 0 with one JSON object and a boolean known is no
// answer.
func (e *Executor) Observe(ctx context.Context, a spec.Action, key gate.Key) execute.Observation {
	if len(a.Target.StatusArgv) == 0 {
		return execute.Observation{Detail: "the action has no statusArgv"}
	}
	o, err := e.observe(ctx, a, key)
	if err != nil {
		return execute.Observation{Detail: "no answer: " + execute.CleanText(err.Error(), execute.MaxDetail)}
	}
	return o
}

func (e *Executor) observe(ctx context.Context, a spec.Action, key gate.Key) (execute.Observation, error) {
	// No parameter is known here, so a placeholder finds none and is refused.
	argv, err := fill(a.Target.StatusArgv, nil)
	if err != nil {
		return execute.Observation{}, err
	}
	if a.Timeout <= 0 {
		return execute.Observation{}, fmt.Errorf("action %q has no timeout", a.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	r, err := e.prepare(ctx, argv, KeyVariable+"="+string(key))
	if err != nil {
		return execute.Observation{}, err
	}
	var complaints output
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &complaints
	end := r.run(ctx)
	if err := unanswered(end, complaints.String()); err != nil {
		return execute.Observation{}, err
	}
	if !r.out.whole() {
		return execute.Observation{}, fmt.Errorf("it prints more than %d bytes", execute.MaxAnswer)
	}
	o := execute.ParseStatus([]byte(end.output))
	if o.Known && o.State == nil {
		o.State = propose.Live{}
	}
	return o, nil
}

// unanswered says why what was printed is no answer; nil if it may be one.
func unanswered(end ending, complaints string) error {
	switch {
	case end.clean:
		return nil
	case end.unstarted != nil:
		return end.unstarted
	case end.exited && end.code == 0:
		return errors.New("exit 0, but something that it started holds its output open")
	}
	return fmt.Errorf("%s: %s", end.why, complaints+" "+end.output)
}

package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// meddler is an executor between the loop and the real one.
type meddler struct {
	execute.Executor
	send func(permit gate.Permit) (execute.Receipt, bool)
	// look changes what is observed.
	look func(o *execute.Observation)
}

func (m meddler) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	if m.send != nil {
		if r, done := m.send(p); done {
			return r, nil
		}
	}
	return m.Executor.Execute(ctx, p, ready)
}

func (m meddler) Observe(ctx context.Context, a spec.Action, key gate.Key) execute.Observation {
	o := m.Executor.Observe(ctx, a, key)
	if m.look != nil {
		m.look(&o)
	}
	return o
}

// between puts a meddler in.
func (w *world) between(m meddler) {
	w.options = func(o *reconcile.Options) {
		m.Executor = o.Executors["webhook"]
		o.Executors = map[string]execute.Executor{"webhook": m}
	}
}

// TestUndoThatDidNothing: an undo is tried once. Where it was sent and nothing
// came of it, the harm stays, and people hear so at once.
func TestUndoThatDidNothing(t *testing.T) {
	for _, effect := range []execute.Effect{execute.Failed, execute.NotNow, execute.NoOp} {
		t.Run(string(effect), func(t *testing.T) {
			w := prepare(t)
			w.between(meddler{send: func(p gate.Permit) (execute.Receipt, bool) {
				return execute.Receipt{Effect: effect, At: w.clock(), Detail: "refused"}, p.Undo()
			}})
			w.start()
			w.harmed()
			w.sweep()
			if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) || !strings.Contains(got, string(effect)) {
				t.Errorf("pages: %q", got)
			}
		})
	}
}

// TestUndoThatIsNeverSent: an undo whose claim is void again and again is given
// up, and then people must have it.
func TestUndoThatIsNeverSent(t *testing.T) {
	w := prepare(t)
	looks := 0
	w.between(meddler{look: func(o *execute.Observation) {
		// Each second look sees nothing.
		if looks++; looks > 2 && looks%2 == 0 {
			*o = execute.Observation{}
		}
	}})
	w.start()
	w.harmed()
	w.run(5 * time.Minute)
	n := 0
	w.r.View(func(s *ledger.State) {
		for _, e := range s.Effects {
			if e.Claim.Undo {
				n++
			}
		}
	})
	if n < 2 {
		t.Fatalf("%d undos were claimed:\n%s", n, w.dump())
	}
	if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) {
		t.Errorf("%d undos were claimed and void; pages: %q", n, got)
	}
}

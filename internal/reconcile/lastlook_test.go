package reconcile_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// meanwhile is an executor whose connection takes its time: something happens
// before it asks ready.
type meanwhile struct {
	execute.Executor
	happens func()
}

func (m meanwhile) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	m.happens()
	return m.Executor.Execute(ctx, p, ready)
}

// A freeze that comes when everything was asked and started still stops the
// first byte, and so does one that nobody can read.
func TestFreezeAtTheLastMoment(t *testing.T) {
	tests := map[string]struct {
		reason  string
		happens func(f *freezer)
	}{
		"file": {"a person froze it while the connection was made", func(f *freezer) {
			f.freeze(ledger.Freeze{ID: "f1", By: "os:alice", Reason: "stop"})
		}},
		"unreadable": {"the folder is gone, so nobody knows", func(f *freezer) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.err = errors.New("input/output error")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.options = func(o *reconcile.Options) {
				o.Executors["webhook"] = meanwhile{o.Executors["webhook"], func() { tt.happens(w.freezer) }}
			}
			w.start()
			w.healthy()
			w.breakNow(0.3)
			w.until("refused send", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.Failed })
			if n := len(w.actuator.Journal()); n != 0 {
				t.Errorf("%s, and %d requests reached the actuator", tt.reason, n)
			}
		})
	}
}

// As long as a lost request may still land, an actuator that does not know its
// key proves nothing.
func TestLateEffect(t *testing.T) {
	w := newWorld(t)
	w.healthy()
	w.actuator.SetMode(executetest.ModeDropRequest)
	w.breakNow(0.3)
	res := w.until("effect in doubt", 15*time.Minute, func(r reconcile.Result) bool { return r.Effect == execute.InDoubt })
	w.sweep() // 30 s after the start, of 35 s in which it may land.
	w.r.View(func(s *ledger.State) {
		if e := s.Effects[res.Key]; e.Effect != execute.InDoubt {
			t.Errorf("%s is %s before its horizon", res.Key, e.Effect)
		}
	})
	w.sweep()
	w.r.View(func(s *ledger.State) {
		if e := s.Effects[res.Key]; e.Effect != execute.NotLanded {
			t.Errorf("%s is %s after its horizon, want not-landed", res.Key, e.Effect)
		}
	})
}

// An older copy of the ledger does not know that this window was used. The
// actuator does, and is believed.
func TestActuatorKnowsTheKey(t *testing.T) {
	w := prepare(t)
	w.set.Services[0].Remediation.ActionWindow = time.Hour
	w.start()
	w.healthy()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	w.healthy()
	w.breakNow(0.3)
	first := w.until("effect", 15*time.Minute, applied)
	w.breakNow(0)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.run(6 * time.Minute) // so long that it may act by itself again
	w.breakNow(0.3)
	res := w.until("hold", 10*time.Minute, func(r reconcile.Result) bool { return holdsFor(r, gate.ReasonKeyClaimed) })
	if n := len(w.actuator.Journal()); res.Key != first.Key || n != 1 {
		t.Errorf("%s was held after %s was sent, %d requests reached the actuator", res.Key, first.Key, n)
	}
}

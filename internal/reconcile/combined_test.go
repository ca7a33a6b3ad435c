package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// way is a receiver that is well or not, and remembers when it was first told of the
// service, and with which pages.
type way struct {
	name string
	now  func() time.Time
	fail error
	mu   sync.Mutex
	at   time.Time
	ids  map[string]bool
}

func (r *way) Name() string { return r.name }

func (r *way) Send(_ context.Context, p escalate.Page, _ string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil || p.Service != "checkout" {
		return "", r.fail
	}
	if p.EndedAt.IsZero() {
		if r.at.IsZero() {
			r.at = r.now()
		}
		r.ids[p.ID] = true
	} else {
		delete(r.ids, p.ID)
	}
	return "", nil
}

func (r *way) told() (time.Time, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, len(r.ids)
}

// threeWays is a world that asks in a channel and tells three receivers: one hangs,
// one is down, one is well.
func threeWays(t *testing.T) (*world, *billboard, []*way) {
	t.Helper()
	w, ch := boarded(t)
	ways := []*way{{name: "hung", fail: context.DeadlineExceeded}, {name: "down", fail: errors.New("connection refused")}, {name: "well"}}
	w.cfg.Receivers = nil
	r := &w.set.Services[0].Remediation
	r.Escalation.Receivers, r.Mode = nil, spec.Approval
	for _, one := range ways {
		one.now, one.ids = func() time.Time { return time.Time{}.Add(w.monotonic()) }, map[string]bool{}
		w.cfg.Receivers = append(w.cfg.Receivers, config.Receiver{Name: one.name, EscalateAfter: 10 * time.Minute})
		r.Escalation.Receivers = append(r.Escalation.Receivers, one.name)
	}
	w.options = func(o *reconcile.Options) {
		o.Board, o.Receivers = ch, nil
		for _, one := range ways {
			o.Receivers = append(o.Receivers, one)
		}
	}
	return w, ch, ways
}

// TestCombinedFaults: whatever fails together, somebody is told of a miss within
// escalateWithin, a sweep and what the retries at two receivers that take nothing
// may last, by one page; and once it is met again none stays open. Where the clock
// was set back the wait may begin anew, and the end waits for a person.
func TestCombinedFaults(t *testing.T) {
	full := errors.New("attempt to write a readonly database")
	back := func(w *world) { w.setClock(-24 * time.Hour); w.breakNow(0.3) }
	cases := map[string]struct {
		breaks func(w *world, ch *billboard, ways []*way)
		back   bool
	}{
		"nothing more":       {breaks: func(*world, *billboard, []*way) {}},
		"ledger":             {breaks: func(w *world, _ *billboard, _ []*way) { w.faulty.fill(full) }},
		"ledger, restart":    {breaks: func(w *world, _ *billboard, _ []*way) { w.restart(); w.faulty.fill(full) }},
		"ledger and channel": {breaks: func(w *world, ch *billboard, _ []*way) { w.faulty.fill(full); ch.failing("", context.DeadlineExceeded) }},
		"channel":            {breaks: func(_ *world, ch *billboard, _ []*way) { ch.failing("", context.DeadlineExceeded) }},
		"clock back":         {breaks: func(w *world, _ *billboard, _ []*way) { back(w) }, back: true},
		"clock back, ledger": {breaks: func(w *world, _ *billboard, _ []*way) { w.faulty.fill(full); back(w) }, back: true},
		"clock ahead":        {breaks: func(w *world, _ *billboard, _ []*way) { w.setClock(24 * time.Hour) }},
		"restart":            {breaks: func(w *world, _ *billboard, _ []*way) { w.restart() }},
		"first two removed":  {breaks: func(w *world, _ *billboard, _ []*way) { w.cfg.Receivers = w.cfg.Receivers[2:]; w.restart() }},
	}
	for name, tc := range cases {
		for _, when := range []time.Duration{0, 10 * time.Minute, 21 * time.Minute} {
			t.Run(name+"/"+when.String(), func(t *testing.T) {
				w, ch, ways := threeWays(t)
				w.start()
				w.healthy()
				w.breakNow(0.3)
				began := time.Time{}.Add(w.monotonic())
				w.run(when)
				tc.breaks(w, ch, ways)
				w.run(45*time.Minute - when)
				bound := w.set.Services[0].Remediation.EscalateWithin + 6*time.Minute
				if tc.back {
					bound += when
				}
				at, open := ways[2].told()
				if at.IsZero() || at.Sub(began) > bound || open != 1 {
					t.Errorf("told after %s, %d pages are open, want one within %s", at.Sub(began), open, bound)
				}
				w.faulty.fill(nil)
				ch.well()
				w.heal()
				w.run(time.Hour)
				if _, open := ways[2].told(); open != 0 && !tc.back {
					t.Errorf("%d pages stay open", open)
				}
			})
		}
	}
}

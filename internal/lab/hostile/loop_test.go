package hostile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// wellFor is how long all is well at first, so that the documents settle.
const wellFor = 2 * time.Hour

// sufferer measures services that miss their SLO from some time on, whatever is
// done.
type sufferer struct {
	misses time.Time
}

// Measure answers with ten events a second, of which a third fail.
func (s *sufferer) Measure(_ context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		m := measure.Measurement{ID: q.ID, Source: "main", HasEvents: true, Total: 10 * q.ID.Window.Seconds(), SampleAt: q.ID.At.Add(-5 * time.Second)}
		if q.ID.At.After(s.misses) {
			m.ErrorRatio = 0.3
		}
		m.Good = m.Total * (1 - m.ErrorRatio)
		out[i] = m
	}
	return out
}

// Clocks agree.
func (s *sufferer) Clocks(context.Context) map[string]time.Duration {
	return map[string]time.Duration{"main": 0}
}

// targets are the actuators of both services, one for each path, without dedup: a
// second send would be a second effect.
type targets map[string]*executetest.Actuator

func newTargets(t *testing.T, set spec.Set, now func() time.Time) targets {
	t.Helper()
	out := targets{}
	for _, svc := range set.Services {
		for _, a := range svc.Remediation.Actions {
			state := map[string]any{}
			if svc.Name == "checkout" {
				for name, v := range live()[a.Name] {
					state[name] = v
				}
			}
			u, err := url.Parse(a.Target.URL)
			if err != nil {
				t.Fatal(err)
			}
			if out[u.Path], err = executetest.NewActuator(executetest.ActuatorOptions{State: state, Now: now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// ServeHTTP is one host with all of them. What is at no path fails the test later.
func (ts targets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := ts[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	a.ServeHTTP(w, r)
}

// TestTheLoopIsBound lets the worst model speak in every window of some days, with a
// policy that allows everything, through the real client, ledger and webhooks: what
// reached the actuators is in the catalogue and in bounds, once for each key.
func TestTheLoopIsBound(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			set := documents(t)
			clock := &atomic.Int64{}
			start := now.Add(-wellFor)
			clock.Store(start.UnixNano())
			at := func() time.Time { return time.Unix(0, clock.Load()).UTC() }
			model := newModel(set, uint64(100+seed))
			reached := newTargets(t, set, at)
			loop, store := newLoop(t, set, at, model, reached)
			for at().Before(now.Add(10 * time.Hour)) {
				clock.Add(int64(10 * time.Minute))
				for _, r := range loop.Sweep(t.Context()) {
					if r.Err != nil {
						t.Fatal(r.Err)
					}
				}
			}
			effects := 0
			for path, a := range reached {
				effects += boundTo(t, set, path, a)
			}
			claims, asked := ledgerOf(t, store)
			t.Logf("%d requests to the model, %d proposals, %d claims, %d effects", model.Asked(), asked, claims, effects)
			if effects == 0 || effects > claims || asked < 20 {
				t.Errorf("%d effects of %d claims and %d proposals: the model did not get far enough to show anything, or further than the ledger", effects, claims, asked)
			}
		})
	}
}

func newLoop(t *testing.T, set spec.Set, at func() time.Time, model http.Handler, reached http.Handler) (*reconcile.Reconciler, ledger.Store) {
	t.Helper()
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Limits.MaxMode, cfg.Limits.StormMin = spec.Auto, 1000
	cfg.Sweep = config.Sweep{Interval: 10 * time.Minute, Concurrency: 1}
	cfg.Sources = []config.Source{{Name: "main", MaxSampleAge: 90 * time.Second}}
	cfg.Executors.Webhook.Allow = []string{"http://actuator.internal/"}
	cfg.Approvers = map[string][]string{"@oncall": {"os:nobody"}}
	cfg.Receivers = []config.Receiver{{Name: "oncall"}}
	cfg.Budget.Capacity = 100
	store, err := openLedger(t, dir, at)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := reconcile.New(t.Context(), reconcile.Options{
		Config: cfg, Documents: func() (spec.Set, error) { return set, nil }, Measurer: &sufferer{misses: now},
		Proposer: asker{modelClient(t, model, at)}, Policy: allowAll(t), Store: store, Now: at, Receivers: []escalate.Receiver{nobody{}},
		Executors: map[string]execute.Executor{"webhook": hook(t, reached, at)}, Freezes: freezefile.New(filepath.Join(dir, "freeze"), at),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return loop, store
}

// boundTo holds the journal of one path against what may be in it.
func boundTo(t *testing.T, set spec.Set, path string, a *executetest.Actuator) (effects int) {
	t.Helper()
	keys := map[string]bool{}
	seen := live()
	for _, rec := range a.Journal() {
		svc, known := set.Service(rec.Service)
		doc, has := svc.Action(rec.Action)
		u, err := url.Parse(doc.Target.URL)
		if !known || !has || err != nil || u.Path != path {
			t.Fatalf("%s of %s came to %s, where the documents do not send it", rec.Action, rec.Service, path)
		}
		if doc.Class != spec.ClassAuto {
			t.Errorf("%s is of class %s, and nobody approved it: %+v", rec.Action, doc.Class, rec)
		}
		if _, err := gate.Key(rec.Key).Window(rec.Service); err != nil || keys[rec.Key] {
			t.Errorf("the key %q is none of %s, or was sent twice: %v", rec.Key, rec.Service, err)
		}
		keys[rec.Key] = true
		parameters := typed(t, rec.Parameters)
		if !reachable(rec.Service, rec.Action, parameters, seen[rec.Action]) {
			t.Errorf("%s of %s with %v was sent while the target had %v", rec.Action, rec.Service, parameters, seen[rec.Action])
		}
		for name, v := range parameters {
			if rec.Service == "checkout" {
				seen[rec.Action][name] = v
			}
		}
		effects++
	}
	return effects
}

// typed gives integers back their type, which JSON does not have.
func typed(t *testing.T, p map[string]any) propose.Parameters {
	t.Helper()
	out := propose.Parameters{}
	for name, v := range p {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		out[name] = v
	}
	return out
}

func ledgerOf(t *testing.T, store ledger.Store) (claims, proposals int) {
	t.Helper()
	entries, err := store.Read(t.Context(), 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch e.Kind {
		case ledger.KindClaim:
			claims++
		case ledger.KindProposal:
			proposals++
			var body ledger.Proposed
			if err := json.Unmarshal(e.Body, &body); err != nil {
				t.Fatal(err)
			}
			// An undo is the loop's own.
			if body.Proposal.Proposer.Kind == who.Kind && (body.Proposal.Undo || body.Proposal.Undoes != "") {
				t.Errorf("a model proposed an undo: %+v", body.Proposal)
			}
		}
	}
	return claims, proposals
}

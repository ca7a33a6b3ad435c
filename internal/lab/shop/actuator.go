package shop

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// actuator is what acts at one path.
type actuator struct {
	path string
	*executetest.Actuator
	// refresh, if any, writes what the service itself says into the state,
	// before a request is answered.
	refresh func(*executetest.Actuator)
}

// ServeHTTP answers with the state of this moment.
func (a *actuator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.refresh != nil {
		a.refresh(a.Actuator)
	}
	a.Actuator.ServeHTTP(w, r)
}

func (s *Shop) openActuators(o Options) error {
	for _, a := range []struct {
		path    string
		state   map[string]any
		apply   func(execute.Envelope)
		refresh func(*executetest.Actuator)
	}{
		{path: "/checkout/release", apply: s.rollback, refresh: s.showRelease},
		{path: "/checkout/scale", state: map[string]any{"replicas": firstReplicas}, apply: s.scale},
		{path: "/fulfilment/workers", apply: func(execute.Envelope) { s.core.recycle() }},
		{path: "/catalog/restart", apply: func(execute.Envelope) { s.core.restart() }},
	} {
		options := executetest.ActuatorOptions{Secret: o.Secret, State: a.state, OnApply: a.apply, Now: o.Now}
		if o.JournalDir != "" {
			name := strings.ReplaceAll(strings.Trim(a.path, "/"), "/", "-") + ".jsonl"
			options.Journal = filepath.Join(o.JournalDir, name)
		}
		opened, err := executetest.NewActuator(options)
		if err != nil {
			return errors.Join(fmt.Errorf("open the actuator at %s: %w", a.path, err), s.closeActuators())
		}
		s.actuators = append(s.actuators, &actuator{path: a.path, Actuator: opened, refresh: a.refresh})
	}
	return nil
}

func (s *Shop) closeActuators() error {
	var errs []error
	for _, a := range s.actuators {
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}

// rollback and scale take what the envelope says; an actuator takes any value,
// since the bounds are the agent's to keep.
func (s *Shop) rollback(e execute.Envelope) {
	if v, ok := e.Parameters["version"].(string); ok {
		s.core.rollback(v)
	}
}

func (s *Shop) scale(e execute.Envelope) {
	switch n := e.Parameters["replicas"].(type) {
	case int64:
		s.core.scale(int(n))
	case float64:
		s.core.scale(int(n))
	}
}

// showRelease writes the release that runs, which a fault changes too.
func (s *Shop) showRelease(a *executetest.Actuator) {
	version, previous := s.core.deployed()
	a.SetState("version", version)
	a.SetState("previousVersion", previous)
}

// Actuator receives webhook.post as CONTRACTS has it, at the paths of slo/:
// /checkout/release, /checkout/scale, /fulfilment/workers, /catalog/restart.
// It does not deduplicate, so that a second send shows as a double effect.
func (s *Shop) Actuator() http.Handler {
	mux := http.NewServeMux()
	for _, a := range s.actuators {
		mux.Handle(a.path, a)
	}
	return mux
}

// Journal is what the actuator did, in order of time: the oracle.
func (s *Shop) Journal() []executetest.Record {
	var all []executetest.Record
	for _, a := range s.actuators {
		all = append(all, a.Journal()...)
	}
	slices.SortStableFunc(all, func(a, b executetest.Record) int { return a.Time.Compare(b.Time) })
	return all
}

// Package web is the way in over HTTP. It takes what the agent knows (the
// folded ledger, the documents, the newest results) and gives the JSON lists
// that people and scripts read; it takes authenticated writes and hands them
// to the desk of the loop. The builders of the lists are pure functions of a
// View, so that the command line shows the same answers from the ledger alone.
package web

import (
	"math"
	"time"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Meta heads every answer.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// List is one kind of thing, sorted.
type List[T any] struct {
	Meta
	Items []T `json:"items"`
}

func listOf[T any](kind string, items []T) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{Meta: Meta{APIVersion: spec.Group, Kind: kind}, Items: items}
}

// View is what the lists are made from: values at one instant.
type View struct {
	State *ledger.State
	Set   spec.Set
	// Last is the newest result of each service; empty outside the agent.
	Last    map[string]reconcile.Result
	MaxMode spec.Mode
	// Undeclared is why the documents did not load. The services are then
	// those that the ledger names, and nothing is known of modes and actions.
	Undeclared error
	// Global is the budget of the whole fleet.
	Global budget.Policy
	// Files are the freeze files of this host; they outrank the ledger.
	Files []ledger.Freeze
	// Changes are those of the change file of this host.
	Changes []measure.Change
	// Revised is what targets listed as rolled out; empty where none was asked.
	Revised []measure.Change
	Now     time.Time
}

// Filter narrows a list.
type Filter struct {
	// Service keeps one service; "" keeps all.
	Service string
	// Since drops what ended or happened before it; zero keeps all.
	Since time.Time
}

func (f Filter) service(name string) bool { return f.Service == "" || f.Service == name }

func (f Filter) since(t time.Time) bool {
	return f.Since.IsZero() || (!t.IsZero() && !t.Before(f.Since))
}

// when is a time as the API shows it: UTC, or nothing where it is not known.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC().Truncate(time.Millisecond)
	return &u
}

// seconds is the time that passed, or nothing where the start is not known.
func seconds(from, now time.Time) *float64 {
	if from.IsZero() {
		return nil
	}
	return number(now.Sub(from).Truncate(time.Millisecond).Seconds())
}

func number(f float64) *float64 { return &f }

// rounded drops the digits that only the arithmetic of a computer made.
func rounded(f float64) *float64 { return number(math.Round(f*1e9) / 1e9) }

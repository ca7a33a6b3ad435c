package sim

import (
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// coverage counts how often a state was reached, by name.
type coverage map[string]int64

// interesting are the states that a run must reach, each with what it means.
func interesting() [][2]string {
	return [][2]string{
		{"claimed", "a key was claimed"},
		{"started", "an effect was started"},
		{"effect applied", "the actuator answered that it did it"},
	}
}

// table gives the counters in their order and the names that stayed at zero.
// What was counted without being expected comes after, for whoever looks.
func (c coverage) table() ([]Counter, []string) {
	var out []Counter
	unreached := []string{}
	left := maps.Clone(c)
	for _, s := range interesting() {
		out = append(out, Counter{Name: s[0], Means: s[1], Count: c[s[0]]})
		delete(left, s[0])
		if c[s[0]] == 0 {
			unreached = append(unreached, s[0])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		out = append(out, Counter{Name: name, Count: left[name]})
	}
	return out, unreached
}

// counted counts what can be read from an entry.
func (w *world) counted(e ledger.Entry, body any) {
	switch b := body.(type) {
	case ledger.Claim:
		w.hit("claimed")
		if b.Ticket != "" {
			w.hit("claimed by a ticket")
		}
		w.rivals(e.Service, b)
	case ledger.Started:
		w.hit("started")
	case ledger.Void:
		w.hit("void")
	case ledger.Receipt:
		w.hit("effect " + string(b.Receipt.Effect))
	case ledger.Settled:
		w.hit("settled as " + string(b.Effect))
		if b.Effect == execute.NotLanded && b.By == ledger.SettledByObservation {
			w.hit("not landed, proved after the horizon")
		}
	case ledger.Recovered:
		w.hit("episode over")
	case approve.Ticket:
		w.hit("ticket opened")
	}
}

// rivals: another replica is about to act in the same window.
func (w *world) rivals(service string, b ledger.Claim) {
	n := 0
	for i := range w.reps {
		r := &w.reps[i]
		if r.up && r.stage >= claiming && r.pass.svc.Name == service && r.pass.permit.Key() == b.Key {
			n++
		}
	}
	if n > 1 {
		w.hit("two replicas in one window")
	}
}

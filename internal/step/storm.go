package step

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// StormLimits are those of setpoint.yaml.
type StormLimits struct {
	// Min is how many services, Fraction which share of the loaded ones.
	Min      int
	Fraction float64
	// Cooldown is how long both must be passed below before the storm is over.
	Cooldown time.Duration
}

// Weather counts the services that are loaded and in no maintenance.
type Weather struct {
	Loaded, Breached, Unknown int
	// Sources are those by whose fault services are Unknown, sorted.
	Sources []string
}

// Add counts one service. What is unknown for a reason of its own is no weather.
func (w *Weather) Add(state compare.State, sourceFault string) {
	w.Loaded++
	switch {
	case state == compare.Breached:
		w.Breached++
	case state == compare.Unknown && sourceFault != "":
		w.Unknown++
	}
}

// Storm reports whether so many are red that the cause is shared: at least Min
// and more than Fraction of them. A fleet of a few never has one.
func (w Weather) Storm(l StormLimits) bool {
	red := w.Breached + w.Unknown
	return red >= l.Min && float64(red) > l.Fraction*float64(w.Loaded)
}

// calm is below both thresholds: between one and both, the storm goes on.
func (w Weather) calm(l StormLimits) bool {
	red := w.Breached + w.Unknown
	return red < l.Min && float64(red) <= l.Fraction*float64(w.Loaded)
}

// Brake gives the change of the storm brake that the weather asks for at now;
// ok is false where it stays as it is.
func Brake(known ledger.StormAt, w Weather, l StormLimits, now time.Time) (next ledger.Storm, ok bool) {
	next = ledger.Storm{Loaded: w.Loaded, Breached: w.Breached, Unknown: w.Unknown, Sources: w.Sources}
	switch {
	case w.Storm(l):
		next.Phase, ok = ledger.StormOn, known.Phase != ledger.StormOn
	case known.Phase == ledger.StormOn && w.calm(l):
		next.Phase, ok = ledger.StormEasing, true
	case known.Phase == ledger.StormEasing && !w.calm(l):
		// Between the two thresholds nothing eases.
		next.Phase, ok = ledger.StormOn, true
	case known.Phase == ledger.StormEasing && now.Sub(known.At) >= l.Cooldown:
		next.Phase, ok = ledger.StormOff, true
	}
	return next, ok
}

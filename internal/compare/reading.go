package compare

import (
	"fmt"
	"math"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

const (
	// defaultMaxSampleAge is used where no limit is given.
	defaultMaxSampleAge = 90 * time.Second
	// maxSkew is how far clocks may lie apart.
	maxSkew = 5 * time.Second
	// epsilon absorbs the rounding of 1 - target, so that exactly one failure in
	// ten is within a target of 0.9.
	epsilon = 1e-9
)

// reading is an error ratio that may be compared, or the reason why not.
type reading struct {
	ratio  float64
	reason Reason
	detail string
}

func (r reading) known() bool { return r.reason == "" }

func unknownReading(reason Reason, detail string) reading {
	return reading{reason: reason, detail: detail}
}

// read decides whether a measurement may be compared at all: it is known, it
// has a ratio, and it rests on a sample that is fresh at the instant it speaks
// of.
func read(m measure.Measurement, asOf time.Time, limit time.Duration) reading {
	switch {
	case !m.Known():
		return unknownReading(m.Reason, m.Detail)
	case !finite(m.ErrorRatio) || !finite(m.Total):
		return unknownReading(measure.NotFinite, "the error ratio is no number")
	case m.ErrorRatio < 0 || m.ErrorRatio > 1 || m.Total < 0:
		return unknownReading(measure.OutOfRange, "the error ratio is not between 0 and 1")
	}
	if r := fresh(m.SampleAt, asOf, limit); !r.known() {
		return r
	}
	if m.HasEvents && m.Total == 0 {
		return unknownReading(LowTraffic, "no events")
	}
	return reading{ratio: m.ErrorRatio}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// fresh is unknown when the newest sample is too old, or from the future.
func fresh(sample, asOf time.Time, limit time.Duration) reading {
	age := asOf.Sub(sample)
	switch {
	case sample.IsZero():
		return unknownReading(Stale, "the time of the newest sample is not known")
	case age < -maxSkew:
		return unknownReading(ClockSkew, fmt.Sprintf("the newest sample lies %s in the future", (-age).Round(time.Second)))
	case age > limit:
		return unknownReading(Stale,
			fmt.Sprintf("the newest sample is %s old, the limit is %s", age.Round(time.Second), limit))
	}
	return reading{}
}

// lowTraffic reports whether a known measurement of a judge window holds too
// few events to mean anything. A raw indicator has no events to count.
func lowTraffic(m measure.Measurement, minEvents float64) bool {
	return m.HasEvents && (m.Total == 0 || !(m.Total >= minEvents))
}

// maxSampleAge is the age limit of the judge window.
func (l Limits) maxSampleAge(source string) time.Duration {
	for _, name := range []string{source, ""} {
		if d, ok := l.MaxSampleAge[name]; ok && d > 0 {
			return d
		}
	}
	return defaultMaxSampleAge
}

// forLonger is the age limit of windows longer than the judge window, which are
// asked again at a cadence.
func (l Limits) forLonger(source string, window time.Duration) time.Duration {
	return l.maxSampleAge(source) + 2*measure.Cadence(window, max(l.Sweep, 0))
}

// misses reports whether an error ratio misses the target.
func misses(ratio, target float64) bool { return excess(ratio, target) > epsilon }

// excess is the error ratio above what the target allows.
func excess(ratio, target float64) float64 { return ratio - (1 - target) }

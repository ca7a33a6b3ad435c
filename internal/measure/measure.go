package measure

import (
	"cmp"
	"slices"
	"time"
)

// Reason says why a measurement is unknown. It is the same word in metrics,
// logs, pages and tables. The empty Reason means known.
type Reason string

// The reasons that a source alone can tell. Compare adds its own.
const (
	// NoData: the query worked and the total returned nothing.
	NoData Reason = "no-data"
	// NotFinite: NaN or an infinity.
	NotFinite Reason = "not-finite"
	// SeveralSeries: more than one series where one was expected.
	SeveralSeries Reason = "several-series"
	// NotAVector: a matrix, a string or a native histogram sample.
	NotAVector Reason = "not-a-vector"
	// Partial: the source says that its answer is incomplete or truncated.
	Partial Reason = "partial"
	// OutOfRange: good exceeds total by more than 1 %, or a negative count.
	OutOfRange Reason = "out-of-range"
	// SourceError: the source did not answer, or answered with an error.
	SourceError Reason = "source-error"
	// SourceRefused: the source is wrongly set up, which time does not heal: an
	// unknown host, a refused certificate, 401, 403 or 404.
	SourceRefused Reason = "source-refused"
	// CounterResets: counters were reset so often in the judge window that their
	// increase means little.
	CounterResets Reason = "counter-resets"
	// Unstable: a recorded ratio jumps from one side of the target to the other
	// between samples, as when two rules write one series (prometheus #5529).
	Unstable Reason = "unstable"
	// QueryError: the source refused the query (bad_data, execution).
	QueryError Reason = "query-error"
	// NotMeasured: no query of that identity was asked.
	NotMeasured Reason = "not-measured"
)

// ClockSkew says that the source's clock and ours are too far apart: "now" is
// another moment there.
const ClockSkew Reason = "clock-skew"

// SourceFault reports whether the reason is the source's fault and not the
// service's: such an Unknown pages once for the source.
func (r Reason) SourceFault() bool {
	return r == SourceError || r == SourceRefused || r == Partial || r == ClockSkew
}

// ID identifies what is measured: one objective from one vantage point, over
// one window that ends at one instant.
type ID struct {
	Service, Objective string
	// Vantage is the index of the vantage point in spec.Objective.Vantages.
	Vantage int
	Window  time.Duration
	// At is UTC with whole milliseconds, as Prometheus keeps time.
	At time.Time
	// TotalOnly: only the total (or the raw value) is asked, to learn whether
	// there was data and traffic at all. It is part of the identity so that
	// such an answer, which has no error ratio, is never taken for one that
	// has.
	TotalOnly bool
}

// Measurement is what was measured for one Query.
type Measurement struct {
	ID     ID
	Source string
	// AsOf is the end of the window that was evaluated. It is before ID.At where
	// a value is held that was asked for an earlier pass; zero means ID.At.
	AsOf time.Time
	// Reason is empty when the measurement is known.
	Reason Reason
	// Detail is the source's own words for the reason, shortened, for people.
	Detail string
	// Good and Total are counts of events over the window. Both are 0 for a
	// raw indicator; then HasEvents is false.
	Good, Total float64
	HasEvents   bool
	// ErrorRatio is bad / total, or the raw ratio, 0 to 1. A total of 0 has no
	// ratio: it is known, with ErrorRatio 0 and Total 0, and compare makes it
	// low-traffic.
	ErrorRatio float64
	// Low and High are the least and the greatest error ratio of a recorded
	// series within the last minutes; both 0 where they were not asked.
	Low, High float64
	// SampleAt is the time of the newest sample under the total query; zero
	// when unknown, or when only the total was asked.
	SampleAt time.Time
	// FirstAt is the time of the oldest sample in a window that is not covered
	// by data; zero when it was not asked or not answered.
	FirstAt time.Time
	// Groups are the groups of an objective that is several series by design,
	// sorted by name; then the counts above are their sums, and say nothing of
	// any of them.
	Groups []NamedGroup
}

// NamedGroup is one group of a grouped objective.
type NamedGroup struct {
	// Name is the group's labels as PromQL has them, e.g. host="a".
	Name string
	// Measurement is of this group alone; its ID is the objective's.
	Measurement
}

// Of is the measurement of one group; "" is the whole. A group that a known
// measurement does not have has no data.
func (m Measurement) Of(group string) Measurement {
	if group == "" || !m.Known() {
		return m
	}
	for _, g := range m.Groups {
		if g.Name == group {
			return g.Measurement
		}
	}
	return Measurement{
		ID: m.ID, Source: m.Source, AsOf: m.AsOf, Reason: NoData, Detail: "nothing of the group " + group,
	}
}

// Known reports whether the measurement may be compared with anything.
func (m Measurement) Known() bool { return m.Reason == "" }

// Set is measurements by identity, as one pass sees them.
type Set map[ID]Measurement

// NewSet indexes measurements. Two answers for one identity that differ leave
// it unknown, whatever their order: a source that says two things at once is
// not believed in either.
func NewSet(ms []Measurement) Set {
	s := make(Set, len(ms))
	s.Refill(ms)
	return s
}

// Refill makes the set one of these measurements alone.
func (s Set) Refill(ms []Measurement) {
	clear(s)
	for _, m := range ms {
		if old, ok := s[m.ID]; ok {
			m = merge(old, m)
		}
		s[m.ID] = m
	}
}

// twoAnswers is what NewSet itself says; a reason that the source gave comes
// before it.
const twoAnswers = "two different answers to one question"

func (m Measurement) contradicted() bool { return m.Reason == SourceError && m.Detail == twoAnswers }

func merge(a, b Measurement) Measurement {
	if a.Known() {
		a, b = b, a
	}
	switch {
	case !b.Known():
		return mergeUnknown(a, b)
	case !a.Known() && a.contradicted():
		a.Source = min(a.Source, b.Source)
		return a
	case !a.Known():
		return a
	case !a.sameAs(b):
		return Measurement{ID: a.ID, Source: min(a.Source, b.Source), Reason: SourceError, Detail: twoAnswers}
	case b.AsOf.Before(a.AsOf):
		return b
	}
	return a
}

func mergeUnknown(a, b Measurement) Measurement {
	if a.contradicted() {
		a, b = b, a
	}
	first := cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail),
		cmp.Compare(a.Source, b.Source), a.FirstAt.Compare(b.FirstAt), a.AsOf.Compare(b.AsOf))
	if b.contradicted() && !a.contradicted() || first <= 0 {
		return a
	}
	return b
}

// sameAs compares what is measured.
func (m Measurement) sameAs(o Measurement) bool {
	same := m.Source == o.Source && m.Reason == o.Reason && m.HasEvents == o.HasEvents &&
		m.Good == o.Good && m.Total == o.Total && m.ErrorRatio == o.ErrorRatio &&
		m.Low == o.Low && m.High == o.High && m.SampleAt.Equal(o.SampleAt)
	return same && slices.EqualFunc(m.Groups, o.Groups, func(a, b NamedGroup) bool {
		return a.Name == b.Name && a.sameAs(b.Measurement)
	})
}

// Get returns the measurement, or one that is Unknown(not-measured).
func (s Set) Get(id ID) Measurement {
	if m, ok := s[id]; ok {
		return m
	}
	return Measurement{ID: id, Reason: NotMeasured}
}

// Instant is now as queries use it: UTC, whole milliseconds.
func Instant(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

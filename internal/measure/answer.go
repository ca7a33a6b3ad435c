package measure

import (
	"cmp"
	"math"
	"time"
)

const (
	// tolerance is how far good may exceed total: extrapolation at the edges of a
	// window gives such ratios on healthy services (slo-generator #319).
	tolerance = 0.01
	// maxResets is how often one counter may be reset within the judge window.
	// Each reset loses what happened since the last scrape.
	maxResets = 3
)

// lookup gives the answer of an expression; it is false when there is none yet.
type lookup func(e *Expr, window time.Duration, at time.Time) (Reading, bool)

// answerer derives one measurement after the other. It asks for everything that
// it needs before it decides, so that what is needed is sent together.
type answerer struct {
	get     lookup
	q       *Query
	missing bool
	// scaled: the numbers are counts already, whatever the query measures.
	scaled bool
}

// answer derives the measurement of a query; it is not whole while an answer is
// missing.
func (a *answerer) answer(q *Query) (Measurement, bool) {
	a.q, a.missing = q, false
	m := Measurement{ID: q.ID, Source: q.Source, AsOf: q.ID.At}
	switch {
	case q.Refused != "":
		return unknown(m, "", unknownValue(QueryError, "%s", q.Refused)), true
	case q.o == nil:
		return unknown(m, "", unknownValue(NotMeasured, "the query was not compiled")), true
	case q.ID.TotalOnly:
		m = a.totalOnly(m)
	case q.o.raw != nil:
		m = a.raw(m)
	case q.o.total != nil && (q.o.good == nil) != (q.o.bad == nil):
		m = a.events(m)
	default:
		m = unknown(m, "", unknownValue(QueryError, "want good or bad with total, or raw"))
	}
	return m, !a.missing
}

func (a *answerer) ask(e *Expr) Reading {
	r, ok := a.get(e, a.q.ID.Window, a.q.ID.At)
	a.missing = a.missing || !ok
	return r
}

// newest is asked once for all windows of an instant.
func (a *answerer) newest() Reading {
	r, ok := a.get(a.q.o.newest, 0, a.q.ID.At)
	a.missing = a.missing || !ok
	return r
}

func (a *answerer) totalOnly(m Measurement) Measurement {
	o := a.q.o
	r := a.ask(cmp.Or(o.total, o.raw))
	if a.missing {
		return m
	}
	if len(o.o.GroupBy) > 0 {
		return a.totals(m, r)
	}
	total := r.one()
	if total.reason == NoData {
		m.FirstAt = a.first()
	}
	return a.counted(m, total)
}

// first is the time of the oldest sample in the long window that this query
// shows not to be covered.
func (a *answerer) first() time.Time {
	if a.q.slot < 0 {
		return time.Time{}
	}
	s := a.q.o.slots[a.q.slot]
	if s.covers == 0 {
		return time.Time{}
	}
	r, ok := a.get(a.q.o.oldest, s.covers, a.q.ID.At.Add(s.before))
	a.missing = a.missing || !ok
	at, _ := r.one().instant()
	return at
}

func (a *answerer) counted(m Measurement, total value) Measurement {
	switch {
	case !total.known():
		return unknown(m, "total", total)
	case a.q.o.total == nil:
		return m
	case isNegative(total.number):
		return unknown(m, "total", negative(total))
	}
	m.HasEvents, m.Total = true, a.scale(total.number)
	return countable(m)
}

func (a *answerer) raw(m Measurement) Measurement {
	r, newest := a.ask(a.q.o.raw), a.newest()
	low, high := a.extremes()
	if a.missing {
		return m
	}
	if len(a.q.o.o.GroupBy) > 0 {
		return a.each(m, newest, Reading{}, r)
	}
	return a.between(a.ratio(m, newest.one(), r.one()), low.one(), high.one())
}

// extremes are those of a recorded ratio in the last minutes, beside the judge
// window only.
func (a *answerer) extremes() (low, high Reading) {
	o := a.q.o
	if o.low == nil || a.q.ID.Window != o.o.JudgeWindow {
		return Reading{}, Reading{}
	}
	return a.ask(o.low), a.ask(o.high)
}

// between adds the extremes. Where there were no samples in those minutes the
// age of the newest one tells; where they cannot be read, nobody knows whether
// the ratio can be believed.
func (a *answerer) between(m Measurement, low, high value) Measurement {
	name, fault := worst([]string{"lowest", "highest"}, low, high)
	switch {
	case !m.Known() || fault.reason == NoData:
		return m
	case !fault.known():
		return unknown(m, name, fault)
	}
	l, h := a.share(low.number), a.share(high.number)
	m.Low, m.High = min(l, h), max(l, h)
	return m
}

// ratio makes a measurement of a raw number and the time of its newest sample.
func (a *answerer) ratio(m Measurement, newest, v value) Measurement {
	m, at := sampled(m, newest)
	if name, fault := worst([]string{"raw", "sample time"}, v, at); !fault.known() {
		return unknown(m, name, fault)
	}
	if v.number < -tolerance || v.number > 1+tolerance {
		return unknown(m, "raw", outOfRange(v, "is no ratio between 0 and 1"))
	}
	m.ErrorRatio = a.share(v.number)
	return m
}

// share is the error ratio of a raw value.
func (a *answerer) share(v float64) float64 {
	v = math.Abs(min(max(v, 0), 1))
	if a.q.o.in.RawSuccess {
		return 1 - v
	}
	return v
}

func (a *answerer) events(m Measurement) Measurement {
	if done, ok := a.fromCounts(m); ok || a.missing {
		return done
	}
	o := a.q.o
	total, part, newest := a.ask(o.total), a.ask(cmp.Or(o.good, o.bad)), a.newest()
	resets := a.resets()
	if a.missing {
		return m
	}
	if len(o.o.GroupBy) > 0 {
		return a.each(m, newest, resets, total, part)
	}
	return steady(a.counts(m, newest.one(), total.one(), part.one()), resets.one())
}

// resets are the most of one counter in the judge window.
func (a *answerer) resets() Reading {
	if a.q.o.resets == nil || a.q.ID.Window != a.q.o.o.JudgeWindow {
		return Reading{}
	}
	return a.ask(a.q.o.resets)
}

// steady refuses counts of counters that were reset too often, or of which
// nobody can tell.
func steady(m Measurement, resets value) Measurement {
	switch {
	case !m.Known() || resets.reason == NoData:
		return m
	case !resets.known():
		return unknown(m, "resets", resets)
	case resets.number > maxResets:
		return unknown(m, "", unknownValue(CounterResets,
			"a counter was reset %s times in the judge window", formatNumber(resets.number)))
	}
	return m
}

// counts makes a measurement of two numbers and the time of the newest sample.
func (a *answerer) counts(m Measurement, newest, total, part value) Measurement {
	m, at := sampled(m, newest)
	o, name := a.q.o, "good"
	if o.bad != nil {
		name = "bad"
	}
	if part.reason == NoData && total.known() && a.absentIsZero(total.number) {
		part = value{}
	}
	if name, v := worst([]string{"total", name, "sample time"}, total, part, at); !v.known() {
		return unknown(m, name, v)
	}
	switch {
	case isNegative(total.number):
		return unknown(m, "total", negative(total))
	case isNegative(part.number):
		return unknown(m, name, negative(part))
	case part.number > total.number*(1+tolerance):
		return unknown(m, name, outOfRange(part, "exceeds the total by more than 1 %"))
	}
	good, bad := min(part.number, total.number), 0.0
	if bad = total.number - good; o.bad != nil {
		good, bad = bad, good
	}
	m.HasEvents, m.Good, m.Total = true, a.scale(good), a.scale(total.number)
	if total.number > 0 {
		m.ErrorRatio = bad / total.number
	}
	return countable(m)
}

// countable refuses a rate that gives no number when it is multiplied by its
// window.
func countable(m Measurement) Measurement {
	if math.IsInf(m.Total, 0) {
		return unknown(m, "total", unknownValue(NotFinite, "is too large to be counted"))
	}
	return m
}

// absentIsZero: beside a total, an absent bad may be zero, because none has
// happened yet. An absent good is a series that vanished: read as zero it would
// be 100 % errors, out of a renamed metric. Where there was no event at all,
// either is zero, whatever the document says; the ratio is not known then.
func (a *answerer) absentIsZero(total float64) bool {
	return total == 0 || a.q.o.bad != nil && a.q.o.in.AbsentBadZero
}

// scale makes a count of a rate per second.
func (a *answerer) scale(v float64) float64 {
	if a.q.o.rate && !a.scaled {
		return v * a.q.ID.Window.Seconds()
	}
	return v
}

func sampled(m Measurement, newest value) (Measurement, value) {
	at, fault := newest.instant()
	m.SampleAt = at
	return m, fault
}

// isNegative holds for negative zero too: no counter gives it.
func isNegative(v float64) bool { return math.Signbit(v) }

func negative(v value) value { return outOfRange(v, "is a negative count") }

func outOfRange(v value, what string) value {
	return unknownValue(OutOfRange, "%s %s", formatNumber(v.number), what)
}

// worst picks the reason that is told when several stand beside each other: a
// fault of the source first, because then the others prove nothing.
func worst(names []string, vs ...value) (string, value) {
	for i, v := range vs {
		if v.reason.SourceFault() {
			return names[i], v
		}
	}
	for i, v := range vs {
		if !v.known() {
			return names[i], v
		}
	}
	return "", value{}
}

func unknown(m Measurement, name string, v value) Measurement {
	m.Reason, m.Detail = v.reason, v.detail
	if name != "" {
		m.Detail = name + ": " + v.detail
	}
	m.Good, m.Total, m.ErrorRatio, m.HasEvents = 0, 0, 0, false
	return m
}

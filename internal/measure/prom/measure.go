package prom

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// tolerance is how far good may exceed total: extrapolation at the edges of a
// window gives such ratios on healthy services (slo-generator #319).
const tolerance = 0.01

// Measure answers the queries one for one and in order. Equal expressions at
// one instant are asked once. Short windows come first, so that a source which
// gives up on long ones has answered what decides.
func (s *Source) Measure(ctx context.Context, qs []measure.Query) []measure.Measurement {
	out := make([]measure.Measurement, len(qs))
	order := make([]int, len(qs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(qs[a].ID.Window, qs[b].ID.Window) })
	next := make(chan int, len(order))
	for _, i := range order {
		next <- i
	}
	close(next)
	b := &batch{source: s, asked: map[askKey]*answer{}}
	var wg sync.WaitGroup
	for range min(s.opts.MaxConcurrency, len(qs)) {
		wg.Go(func() {
			for i := range next {
				out[i] = b.measure(ctx, qs[i])
			}
		})
	}
	wg.Wait()
	return out
}

// batch is one call of Measure.
type batch struct {
	source *Source
	mu     sync.Mutex
	asked  map[askKey]*answer
	faults int
}

type askKey struct {
	expr string
	at   int64
}

type answer struct {
	once sync.Once
	reading
}

// ask gives the value of an expression, from memory when it was asked before.
func (b *batch) ask(ctx context.Context, expr string, at time.Time) reading {
	key := askKey{expr, at.UnixMilli()}
	b.mu.Lock()
	a, ok := b.asked[key]
	if !ok {
		a = &answer{}
		b.asked[key] = a
	}
	b.mu.Unlock()
	a.once.Do(func() { a.reading = b.askOnce(ctx, expr, at) })
	return a.reading
}

func (b *batch) askOnce(ctx context.Context, expr string, at time.Time) reading {
	b.mu.Lock()
	down := b.faults >= giveUpAfter
	b.mu.Unlock()
	if down {
		return reading{
			reason: measure.SourceError,
			detail: "not asked, the source failed several times in a row in this pass",
		}
	}
	r := b.source.query(ctx, expr, at)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.reason == measure.SourceError:
		b.faults++
	case b.faults < giveUpAfter:
		b.faults = 0
	}
	return r
}

// measure answers one query.
func (b *batch) measure(ctx context.Context, q measure.Query) measure.Measurement {
	m := measure.Measurement{ID: q.ID, Source: b.source.opts.Name}
	switch {
	case q.Refused != "":
		return unknown(m, "", reading{reason: measure.QueryError, detail: q.Refused})
	case q.ID.TotalOnly:
		return b.totalOnly(ctx, q, m)
	case q.SampleTime == "":
		return unknown(m, "", reading{reason: measure.QueryError, detail: "nothing tells the age of its samples"})
	case q.Raw != "":
		return b.raw(ctx, q, m)
	case q.Total != "" && (q.Good == "") != (q.Bad == ""):
		return b.events(ctx, q, m)
	default:
		return unknown(m, "", reading{reason: measure.QueryError, detail: "want good or bad with total, or raw"})
	}
}

func (b *batch) totalOnly(ctx context.Context, q measure.Query, m measure.Measurement) measure.Measurement {
	total := b.ask(ctx, cmp.Or(q.Total, q.Raw), q.ID.At)
	m.Notes = notes(total)
	if total.reason == measure.NoData && q.FirstSample != "" {
		if first := sampleTime(b.ask(ctx, q.FirstSample, q.ID.At)); first.reason == "" {
			m.FirstAt = first.at
		}
	}
	if total.reason != "" {
		return unknown(m, "total", total)
	}
	if q.Total != "" {
		if isNegative(total.value) {
			return unknown(m, "total", negative(total))
		}
		m.HasEvents, m.Total = true, total.value
	}
	return m
}

func (b *batch) raw(ctx context.Context, q measure.Query, m measure.Measurement) measure.Measurement {
	value := b.ask(ctx, q.Raw, q.ID.At)
	newest := sampleTime(b.ask(ctx, q.SampleTime, q.ID.At))
	m.Notes = notes(value, newest)
	m.SampleAt = newest.at
	if name, r := worst([]string{"raw", "sample time"}, value, newest); r.reason != "" {
		return unknown(m, name, r)
	}
	if value.value < -tolerance || value.value > 1+tolerance {
		return unknown(m, "raw", outOfRange(value, "is no ratio between 0 and 1"))
	}
	m.ErrorRatio = math.Abs(min(max(value.value, 0), 1))
	if q.RawSuccess {
		m.ErrorRatio = 1 - m.ErrorRatio
	}
	return m
}

func (b *batch) events(ctx context.Context, q measure.Query, m measure.Measurement) measure.Measurement {
	total := b.ask(ctx, q.Total, q.ID.At)
	name := "good"
	if q.Bad != "" {
		name = "bad"
	}
	part := b.ask(ctx, cmp.Or(q.Good, q.Bad), q.ID.At)
	newest := sampleTime(b.ask(ctx, q.SampleTime, q.ID.At))
	m.Notes = notes(total, part, newest)
	m.SampleAt = newest.at
	if part.reason == measure.NoData && total.reason == "" && absentIsZero(q, total.value) {
		part = reading{}
	}
	if name, r := worst([]string{"total", name, "sample time"}, total, part, newest); r.reason != "" {
		return unknown(m, name, r)
	}
	switch {
	case isNegative(total.value):
		return unknown(m, "total", negative(total))
	case isNegative(part.value):
		return unknown(m, name, negative(part))
	case part.value > total.value*(1+tolerance):
		return unknown(m, name, outOfRange(part, "exceeds the total by more than 1 %"))
	}
	return counts(m, q.Bad != "", min(part.value, total.value), total.value)
}

// absentIsZero: beside a total, an absent bad may be zero, because none has
// happened yet. An absent good is a series that vanished: read as zero it would
// be 100 % errors, out of a renamed metric. Where there was no event at all,
// either is zero, whatever the document says; the ratio is not known then.
func absentIsZero(q measure.Query, total float64) bool {
	return total == 0 || (q.Bad != "" && q.AbsentBadZero)
}

func counts(m measure.Measurement, isBad bool, part, total float64) measure.Measurement {
	good, bad := part, total-part
	if isBad {
		good, bad = bad, good
	}
	m.HasEvents, m.Good, m.Total = true, good, total
	if total > 0 {
		m.ErrorRatio = bad / total
	}
	return m
}

// isNegative holds for negative zero too: no counter gives it.
func isNegative(v float64) bool { return math.Signbit(v) }

func negative(r reading) reading { return outOfRange(r, "is a negative count") }

func outOfRange(r reading, what string) reading {
	return reading{reason: measure.OutOfRange, detail: formatValue(r.value) + " " + what}
}

// worst picks the reason that is told when several stand beside each other: a
// fault of the source first, because then the others prove nothing.
func worst(names []string, rs ...reading) (string, reading) {
	for i, r := range rs {
		if r.reason.SourceFault() {
			return names[i], r
		}
	}
	for i, r := range rs {
		if r.reason != "" {
			return names[i], r
		}
	}
	return "", reading{}
}

func unknown(m measure.Measurement, name string, r reading) measure.Measurement {
	m.Reason, m.Detail = r.reason, r.detail
	if name != "" {
		m.Detail = name + ": " + r.detail
	}
	m.Good, m.Total, m.ErrorRatio, m.HasEvents = 0, 0, 0, false
	return m
}

func notes(rs ...reading) []string {
	var ns []string
	for _, r := range rs {
		ns = append(ns, r.notes...)
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

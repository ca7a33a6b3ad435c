package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The recording rules that `setpoint slo rules` writes: counts of good or bad
// and of total events in steps of CountStep. They are counts and never ratios,
// because the mean of ratios is not the ratio of a window with uneven traffic.
const (
	CountTotal = "setpoint:slo_total:increase5m"
	CountGood  = "setpoint:slo_good:increase5m"
	CountBad   = "setpoint:slo_bad:increase5m"
	// CountLabel identifies an objective, with a digest of its queries: rules of
	// queries that were changed since are not used.
	CountLabel = "setpoint_slo"
	// CountStep is the range and the interval of the rules.
	CountStep = 5 * time.Minute
)

// countedFrom is the window from which recorded counts are used: below, raw
// samples cost little and are newer.
const countedFrom = 24 * time.Hour

// countedShare is how much of a window the recorded counts must cover.
const countedShare = 0.98

// counted are the expressions over recorded counts.
type counted struct {
	part, total *Expr
	// parts and totals are how many counts were recorded.
	parts, totals *Expr
}

// CountID identifies the recorded counts of an indicator of an objective.
func CountID(service, objective string, in spec.Indicator) string {
	h := sha256.New()
	for _, p := range []struct {
		name  string // A query that was good and is bad now counts something else.
		query *spec.Query
	}{{"good", in.Good}, {"bad", in.Bad}, {"total", in.Total}, {"raw", in.Raw}} {
		if p.query != nil {
			h.Write([]byte(p.name + " " + p.query.At(CountStep) + "\n"))
		}
	}
	return service + "/" + objective + "@" + hex.EncodeToString(h.Sum(nil))[:8]
}

// Countable reports whether the counts of an indicator can be recorded: it has
// a total, it is one series, and its absent part, if it may be absent, is zero.
func Countable(o spec.Objective, in spec.Indicator) bool {
	return in.Total != nil && len(o.GroupBy) == 0 && (in.Good != nil || in.AbsentBadZero)
}

func (p *Plans) counts(o *objective) *counted {
	if !Countable(o.o, o.in) {
		return nil
	}
	matcher := "{" + CountLabel + "=" + strconv.Quote(CountID(o.service, o.o.ID, o.in)) + "}"
	over := func(function, name string) *Expr {
		return p.expr(func(w time.Duration) string {
			return function + "(" + name + matcher + "[" + spec.FormatDuration(w) + "])"
		})
	}
	part := CountGood
	if o.in.Bad != nil {
		part = CountBad
	}
	return &counted{
		part: over("sum_over_time", part), parts: over("count_over_time", part),
		total: over("sum_over_time", CountTotal), totals: over("count_over_time", CountTotal),
	}
}

// fromCounts answers from recorded counts, where they cover the window.
func (a *answerer) fromCounts(m Measurement) (Measurement, bool) {
	c, window := a.q.o.counted, a.q.ID.Window
	if c == nil || window < countedFrom {
		return m, false
	}
	totals, steps := a.ask(c.totals).one(), float64(window/CountStep)
	if a.missing || !totals.known() || totals.number < countedShare*steps || totals.number > steps+1 {
		return m, false // More than one in each step would be counted several times.
	}
	// Half of the rules may be loaded, or fail: what was not counted is no zero.
	total, part, parts, newest := a.ask(c.total), a.ask(c.part), a.ask(c.parts).one(), a.newest()
	if a.missing || parts != totals {
		return m, false
	}
	a.scaled = true // the rules record counts, never rates
	m = a.counts(m, newest.one(), total.one(), part.one())
	a.scaled = false
	return m, m.Known()
}

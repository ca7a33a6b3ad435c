package spec

import (
	"slices"
	"time"
)

// Objective is one target of one SLO.
type Objective struct {
	// ID is the SLO's name, or "slo/objective" where the SLO has several.
	ID  string
	SLO string
	// Description is the document's text; it is shown to people and never sent
	// to a model.
	Description string
	// Target is the demanded share of good events, 0 < Target < 1.
	Target float64
	// Window is the rolling period of the SLO, e.g. 30 d.
	Window    time.Duration
	Indicator Indicator
	// Others are further vantage points: the same promise measured by another
	// source, with the same queries or its own. They must agree with Indicator,
	// otherwise the objective is Unknown(conflicting); they are never averaged.
	Others []Indicator
	// GroupBy are the labels, sorted, of an objective that is several series by
	// design: it is judged for each group, and the worst one speaks for it.
	// Empty: one series.
	GroupBy []string
	// Slice is the length of the time slices of a Timeslices objective, which no
	// window of it may be shorter than; zero for Occurrences.
	Slice time.Duration
	// JudgeWindow is the window that must miss the target too before anything
	// is done, and over which an action is judged (default 5 m).
	JudgeWindow time.Duration
	// MinEvents is the least total per judge window; below it the objective is
	// Unknown(low-traffic). Zero: no floor. It cannot bind a raw indicator.
	MinEvents float64
	BurnRates []BurnRate
	// Outcomes are this objective's own shares of the excess; a share of 0 is the
	// Remediation's.
	Outcomes Outcomes
	Pos      Position
}

// Indicator says how good and total are measured. Exactly one of Good, Bad or
// Raw is set; Total goes with Good and Bad.
type Indicator struct {
	Good, Bad, Total, Raw *Query
	// RawSuccess: Raw is the share of good events, otherwise of bad ones.
	RawSuccess bool
	// AbsentBadZero: an absent Bad beside a present Total counts as zero. It
	// never makes an absent Total zero, nor an absent Good: that would be 100 %
	// errors.
	AbsentBadZero bool
}

// Queries returns the queries that are set, in the order good, bad, total, raw.
func (i Indicator) Queries() []Query {
	var qs []Query
	for _, q := range []*Query{i.Good, i.Bad, i.Total, i.Raw} {
		if q != nil {
			qs = append(qs, *q)
		}
	}
	return qs
}

// Vantages are all vantage points of the objective, the first one first.
func (o Objective) Vantages() []Indicator {
	return append([]Indicator{o.Indicator}, o.Others...)
}

// Windows are all windows over which the objective is measured at each pass, in
// rising order: those of its burn rates, the judge window and its own.
func (o Objective) Windows() []time.Duration {
	ws := []time.Duration{o.JudgeWindow, o.Window}
	for _, b := range o.BurnRates {
		ws = append(ws, b.Short, b.Long)
	}
	ws = slices.DeleteFunc(ws, func(w time.Duration) bool { return w <= 0 })
	slices.Sort(ws)
	return slices.Compact(ws)
}

// BurnRate is one pair of windows (SRE workbook, chapter 5): it burns when the
// error ratio over both, divided by 1 - target, exceeds Factor.
type BurnRate struct {
	Short, Long time.Duration
	Factor      float64
	// Page: the pair can make the objective Breached. Others are only shown.
	Page bool
}

// DefaultBurnRates are the two page pairs of the SRE workbook for 30 days:
// 2 % of the error budget in 1 h, and 5 % in 6 h.
func DefaultBurnRates() []BurnRate {
	return []BurnRate{
		{Short: 5 * time.Minute, Long: time.Hour, Factor: 14.4, Page: true},
		{Short: 30 * time.Minute, Long: 6 * time.Hour, Factor: 6, Page: true},
	}
}

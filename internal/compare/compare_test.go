package compare_test

import (
	"cmp"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	judgeWindow = 5 * time.Minute
	short30     = 30 * time.Minute
	hour        = time.Hour
	sixHours    = 6 * time.Hour
	period      = 720 * time.Hour
)

var limits = compare.Limits{
	MaxSampleAge: map[string]time.Duration{"": 90 * time.Second, "slow": 5 * time.Minute},
	Sweep:        30 * time.Second,
}

// objective has a target of 0.9, so that an error ratio is a tenth of its burn
// rate: 0.72 over 1 h/5 m burns at 7.2, and 0.4 over 6 h/30 m at 4.
func objective(id string) spec.Objective {
	return spec.Objective{
		ID: id, Target: 0.9, Window: period, JudgeWindow: judgeWindow, MinEvents: 50,
		Indicator: spec.Indicator{
			Good:  &spec.Query{Expr: `sum(increase(http_requests_total{code!~"5.."}[{{.window}}]))`},
			Total: &spec.Query{Expr: `sum(increase(http_requests_total[{{.window}}]))`},
		},
		BurnRates: []spec.BurnRate{
			{Short: judgeWindow, Long: hour, Factor: 7.2, Page: true},
			{Short: short30, Long: sixHours, Factor: 4, Page: true},
		},
	}
}

func service(name string, os ...spec.Objective) spec.Service {
	return spec.Service{Name: name, Objectives: os, Remediation: spec.Remediation{
		HoldFor: 10 * time.Minute, UnknownFor: 10 * time.Minute,
		Outcomes: spec.Outcomes{Improved: 0.5, Worsened: 0.2},
	}}
}

// edit changes what the world answers.
type edit func(*measure.Measurement)

// answer gives a healthy measurement for each query, then applies the edits.
func answer(qs []measure.Query, edits ...edit) []measure.Measurement {
	ms := make([]measure.Measurement, len(qs))
	for i, q := range qs {
		m := measure.Measurement{ID: q.ID, Source: cmp.Or(q.Source, "main"), HasEvents: true, Good: 100000, Total: 100000}
		if !q.ID.TotalOnly {
			m.SampleAt = q.ID.At.Add(-10 * time.Second)
		}
		for _, e := range edits {
			e(&m)
		}
		ms[i] = m
	}
	return ms
}

// on applies edits to the measurements over one window of one objective, and
// not to totals alone.
func on(id string, window time.Duration, es ...edit) edit {
	return func(m *measure.Measurement) {
		if m.ID.Objective == id && m.ID.Window == window && !m.ID.TotalOnly {
			for _, e := range es {
				e(m)
			}
		}
	}
}

func ratio(r float64) edit {
	return func(m *measure.Measurement) {
		m.ErrorRatio = r
		m.Good = m.Total * (1 - r)
	}
}

func reason(r measure.Reason) edit {
	return func(m *measure.Measurement) {
		m.Reason, m.Detail = r, "words"
		m.Good, m.Total, m.ErrorRatio, m.HasEvents = 0, 0, 0, false
	}
}

func events(total float64) edit {
	return func(m *measure.Measurement) { m.Total, m.Good = total, total*(1-m.ErrorRatio) }
}

func age(d time.Duration) edit {
	return func(m *measure.Measurement) { m.SampleAt = m.ID.At.Add(-d) }
}

// burning makes the 1 h/5 m pair burn.
func burning(id string) edit {
	return func(m *measure.Measurement) {
		on(id, judgeWindow, ratio(0.8))(m)
		on(id, hour, ratio(0.8))(m)
	}
}

// uncovered takes away the data that the coverage of a window needs.
func uncovered(id string, window time.Duration, first time.Time) edit {
	return func(m *measure.Measurement) {
		if m.ID.From(0) == measure.CoverageID("checkout", objective(id), window, now) {
			reason(measure.NoData)(m)
			m.FirstAt = first
		}
	}
}

// hourBefore sets the events of the hour before the judge window.
func hourBefore(id string, e edit) edit {
	return func(m *measure.Measurement) {
		if m.ID.From(0) == measure.HourBeforeID("checkout", objective(id), now) {
			e(m)
		}
	}
}

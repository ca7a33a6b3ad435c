package measure_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// kind is what an expression of these tests asks for.
type kind string

const (
	kGood   kind = "good"
	kBad    kind = "bad"
	kTotal  kind = "total"
	kRaw    kind = "raw"
	kNewest kind = "newest"
	kOldest kind = "oldest"
	kResets kind = "resets"
	kLow    kind = "low"
	kHigh   kind = "high"
	// Recorded counts: their sums, and how many there are.
	kCountTotal  kind = "count total"
	kCountPart   kind = "count part"
	kCountTotals kind = "count totals"
	kCountParts  kind = "count parts"
)

var kinds = []struct {
	prefix string
	kind   kind
}{
	{"max(timestamp(", kNewest},
	{"max by (host) (timestamp(", kNewest},
	{"min(min_over_time(timestamp(", kOldest},
	{"min(min_over_time(", kLow},
	{"max(max_over_time(", kHigh},
	{"max(resets(", kResets},
	{"max by (host) (resets(", kResets},
	{"sum_over_time(setpoint:slo_total", kCountTotal},
	{"sum_over_time(setpoint:slo_", kCountPart},
	{"count_over_time(setpoint:slo_total", kCountTotals},
	{"count_over_time(setpoint:slo_", kCountParts},
	{"sum(increase(good", kGood}, {"sum(rate(good", kGood}, {"sum by (host) (increase(good", kGood},
	{"sum(increase(bad", kBad}, {"sum(rate(bad", kBad}, {"sum by (host) (increase(bad", kBad},
	{"sum(increase(all", kTotal}, {"sum(rate(all", kTotal}, {"sum by (host) (increase(all", kTotal},
	{"avg", kRaw}, {"slo:", kRaw},
}

func kindOf(t fatal, expr string) kind {
	t.Helper()
	for _, k := range kinds {
		if strings.HasPrefix(expr, k.prefix) {
			return k.kind
		}
	}
	t.Fatalf("unexpected expression %s", expr)
	return ""
}

// answers is what a source says, by kind; what is not in it returns nothing.
type answers map[kind]measure.Reading

func (a answers) to(t fatal) func(measure.Request) measure.Reading {
	return func(r measure.Request) measure.Reading { return a[kindOf(t, r.Expr)] }
}

// with is the answers with another one.
func (a answers) with(k kind, r measure.Reading) answers {
	out := answers{k: r}
	for name, was := range a {
		if name != k {
			out[name] = was
		}
	}
	return out
}

// number is one series of each value.
func number(vs ...float64) measure.Reading {
	var r measure.Reading
	for _, v := range vs {
		r.Series = append(r.Series, measure.Sample{Value: v})
	}
	return r
}

func fails(reason measure.Reason) measure.Reading {
	return measure.Reading{Reason: reason, Detail: "words of the source"}
}

// sampleAt is the newest sample of these tests.
var sampleAt = now.Add(-10 * time.Second)

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

func events(part kind, value, total float64) answers {
	return answers{part: number(value), kTotal: number(total), kNewest: number(seconds(sampleAt)), kResets: number(0)}
}

func counter(name string) *spec.Query {
	return &spec.Query{Expr: "sum(increase(" + name + "[{{.window}}]))"}
}

func goodOf() spec.Objective {
	o := objective()
	o.Indicator = spec.Indicator{Good: counter("good"), Total: counter("all"), AbsentBadZero: true}
	return o
}

func badOf(absentIsZero bool) spec.Objective {
	o := objective()
	o.Indicator = spec.Indicator{Bad: counter("bad"), Total: counter("all"), AbsentBadZero: absentIsZero}
	return o
}

func rateOf() spec.Objective {
	o := objective()
	o.Indicator = spec.Indicator{
		Bad: &spec.Query{Expr: "sum(rate(bad[{{.window}}]))"}, Total: &spec.Query{Expr: "sum(rate(all[{{.window}}]))"},
		AbsentBadZero: true,
	}
	return o
}

func rawOf(success bool) spec.Objective {
	o := objective()
	o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg(avg_over_time(up[{{.window}}]))"}, RawSuccess: success}
	return o
}

func recordedOf(success bool) spec.Objective {
	o := rawOf(success)
	o.Indicator.Raw = &spec.Query{Expr: "slo:sli_error:ratio_rate{{.window}}", Recorded: true}
	return o
}

// known is a measurement of counts with a fresh sample.
func known(good, total float64) measure.Measurement {
	m := measure.Measurement{HasEvents: true, Good: good, Total: total, SampleAt: sampleAt}
	if total > 0 {
		m.ErrorRatio = (total - good) / total
	}
	return m
}

func ratio(r float64) measure.Measurement {
	return measure.Measurement{ErrorRatio: r, SampleAt: sampleAt}
}

func unknown(reason measure.Reason, detail string) measure.Measurement {
	return measure.Measurement{Reason: reason, Detail: detail, SampleAt: sampleAt}
}

func between(m measure.Measurement, low, high float64) measure.Measurement {
	m.Low, m.High = low, high
	return m
}

func unseen(m measure.Measurement) measure.Measurement {
	m.SampleAt = time.Time{}
	return m
}

const ofTheSource = "words of the source"

type answerCase struct {
	reason string
	o      spec.Objective
	window time.Duration
	say    answers
	want   measure.Measurement
}

func runAnswers(t *testing.T, cases map[string]answerCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.window == 0 {
				tc.window = 5 * time.Minute
			}
			qs := measure.At("checkout", tc.o, tc.window, now)
			got := batched(t, qs, 1, tc.say.to(t))[0]
			tc.want.ID, tc.want.AsOf = qs[0].ID, now
			for i := range tc.want.Groups {
				tc.want.Groups[i].ID, tc.want.Groups[i].AsOf = qs[0].ID, now
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if math.Signbit(got.ErrorRatio) || math.Signbit(got.Good) || math.Signbit(got.Total) {
				t.Errorf("a negative zero is no count: %+v", got)
			}
		})
	}
}

func TestAnswerOfCounts(t *testing.T) {
	histogram := number(1)
	histogram.Series[0].Histogram = true
	good, bad := events(kGood, 98, 100), events(kBad, 2, 100)
	runAnswers(t, map[string]answerCase{
		"good":                       {"bad is what is not good", goodOf(), 0, good, known(98, 100)},
		"bad":                        {"good is what is not bad", badOf(true), 0, bad, known(98, 100)},
		"no total":                   {"nothing returned is nothing known", goodOf(), 0, good.with(kTotal, number()), unknown(measure.NoData, "total: returned nothing")},
		"no bad":                     {"no error has happened yet", badOf(true), 0, bad.with(kBad, number()), known(100, 100)},
		"no bad, which is not zero":  {"the document says so", badOf(false), 0, bad.with(kBad, number()), unknown(measure.NoData, "bad: returned nothing")},
		"no good":                    {"a series that vanished is no outage", goodOf(), 0, good.with(kGood, number()), unknown(measure.NoData, "good: returned nothing")},
		"no events, no good":         {"of nothing, nothing was good", goodOf(), 0, events(kGood, 0, 0).with(kGood, number()), known(0, 0)},
		"no events, no bad":          {"whatever the document says", badOf(false), 0, events(kBad, 0, 0).with(kBad, number()), known(0, 0)},
		"no events":                  {"known, and compare makes it low traffic", badOf(false), 0, events(kBad, 0, 0), known(0, 0)},
		"all bad":                    {"everything failed", badOf(true), 0, events(kBad, 100, 100), known(0, 100)},
		"a little more good":         {"extrapolation gives up to 1 %", goodOf(), 0, events(kGood, 101, 100), known(100, 100)},
		"a little more bad":          {"extrapolation gives up to 1 %", badOf(true), 0, events(kBad, 101, 100), known(0, 100)},
		"more good than total":       {"not of the same events", goodOf(), 0, events(kGood, 101.1, 100), unknown(measure.OutOfRange, "good: 101.1 exceeds the total by more than 1 %")},
		"more bad than total":        {"not of the same events", badOf(true), 0, events(kBad, 101.1, 100), unknown(measure.OutOfRange, "bad: 101.1 exceeds the total by more than 1 %")},
		"bad without total":          {"not of the same events", badOf(true), 0, events(kBad, 1, 0), unknown(measure.OutOfRange, "bad: 1 exceeds the total by more than 1 %")},
		"negative total":             {"no count", badOf(true), 0, bad.with(kTotal, number(-1)), unknown(measure.OutOfRange, "total: -1 is a negative count")},
		"negative zero total":        {"no counter gives it", badOf(true), 0, bad.with(kTotal, number(math.Copysign(0, -1))), unknown(measure.OutOfRange, "total: -0 is a negative count")},
		"negative zero, no bad":      {"no counter gives it", badOf(false), 0, bad.with(kTotal, number(math.Copysign(0, -1))).with(kBad, number()), unknown(measure.OutOfRange, "total: -0 is a negative count")},
		"negative bad":               {"no count", badOf(true), 0, bad.with(kBad, number(-1)), unknown(measure.OutOfRange, "bad: -1 is a negative count")},
		"negative zero good":         {"no counter gives it", goodOf(), 0, good.with(kGood, number(math.Copysign(0, -1))), unknown(measure.OutOfRange, "good: -0 is a negative count")},
		"NaN":                        {"no number", badOf(true), 0, bad.with(kBad, number(math.NaN())), unknown(measure.NotFinite, "bad: returned NaN")},
		"infinite":                   {"no number", badOf(true), 0, bad.with(kTotal, number(math.Inf(1))), unknown(measure.NotFinite, "total: returned +Inf")},
		"infinitely little":          {"no number", goodOf(), 0, good.with(kGood, number(math.Inf(-1))), unknown(measure.NotFinite, "good: returned -Inf")},
		"subnormal":                  {"dividing by it overflows", badOf(true), 0, bad.with(kTotal, number(5e-324)), unknown(measure.NotFinite, "total: returned 5e-324")},
		"several totals":             {"never the first of a list", badOf(true), 0, bad.with(kTotal, number(100, 100)), unknown(measure.SeveralSeries, "total: returned 2 series, want 1: aggregate with sum()")},
		"several good":               {"never the first of a list", goodOf(), 0, good.with(kGood, number(98, 2)), unknown(measure.SeveralSeries, "good: returned 2 series, want 1: aggregate with sum()")},
		"histogram":                  {"one number is wanted", goodOf(), 0, good.with(kTotal, histogram), unknown(measure.NotAVector, "total: returned a native histogram, want one number")},
		"source fails":               {"its own word", goodOf(), 0, good.with(kGood, fails(measure.SourceError)), unknown(measure.SourceError, "good: "+ofTheSource)},
		"source fails, and no total": {"a fault of the source comes first: the rest proves nothing", goodOf(), 0, good.with(kGood, fails(measure.Partial)).with(kTotal, number()), unknown(measure.Partial, "good: "+ofTheSource)},
		"query refused":              {"the first that is not known", goodOf(), 0, good.with(kTotal, fails(measure.QueryError)).with(kGood, number()), unknown(measure.QueryError, "total: "+ofTheSource)},
		"no sample time":             {"an increase of a series that is gone is not of now", goodOf(), 0, good.with(kNewest, number()), unseen(unknown(measure.NoData, "sample time: no sample of the series is fresh enough to be seen"))},
		"old sample":                 {"compare says how old is too old", goodOf(), 0, good.with(kNewest, number(seconds(now.Add(-4*time.Minute)))), func() measure.Measurement { m := known(98, 100); m.SampleAt = now.Add(-4 * time.Minute); return m }()},
		"sample time 0":              {"no time", goodOf(), 0, good.with(kNewest, number(0)), unseen(unknown(measure.NotFinite, "sample time: 0 is no time"))},
		"sample time in the year 1e": {"no time", goodOf(), 0, good.with(kNewest, number(1e12)), unseen(unknown(measure.NotFinite, "sample time: 1e+12 is no time"))},
		"sample time NaN":            {"no time", goodOf(), 0, good.with(kNewest, number(math.NaN())), unseen(unknown(measure.NotFinite, "sample time: returned NaN"))},
		"sample time failed":         {"a fault of the source comes first", goodOf(), 0, good.with(kNewest, fails(measure.SourceError)).with(kTotal, number()), unseen(unknown(measure.SourceError, "sample time: "+ofTheSource))},
		"three resets":               {"a few restarts are made up for", goodOf(), 0, good.with(kResets, number(3)), known(98, 100)},
		"four resets":                {"each lost what happened since the last scrape", goodOf(), 0, good.with(kResets, number(4)), unknown(measure.CounterResets, "a counter was reset 4 times in the judge window")},
		"resets not told":            {"nobody knows whether the counts mean anything", goodOf(), 0, good.with(kResets, fails(measure.SourceError)), unknown(measure.SourceError, "resets: "+ofTheSource)},
		"no resets":                  {"an increase without two samples there is none either", goodOf(), 0, good.with(kResets, number()), known(98, 100)},
		"resets of an hour":          {"only the judge window is acted on", goodOf(), time.Hour, good.with(kResets, number(9)), known(98, 100)},
		"rate":                       {"a rate is a count when it is multiplied by its window", rateOf(), 0, events(kBad, 0.5, 1), known(150, 300)},
		"rate over an hour":          {"a rate is a count when it is multiplied by its window", rateOf(), time.Hour, events(kBad, 0.5, 1), known(1800, 3600)},
		"rate, none bad":             {"no error has happened yet", rateOf(), 0, events(kBad, 0, 1).with(kBad, number()), known(300, 300)},
		"rate too large":             {"no number of events", rateOf(), time.Hour, events(kBad, 0, 1e308), unknown(measure.NotFinite, "total: is too large to be counted")},
	})
}

func TestAnswerOfRatios(t *testing.T) {
	raw := func(v float64) answers {
		return answers{kRaw: number(v), kNewest: number(seconds(sampleAt)), kLow: number(v), kHigh: number(v)}
	}
	runAnswers(t, map[string]answerCase{
		"failure":           {"the share of bad", rawOf(false), 0, raw(0.25), ratio(0.25)},
		"success":           {"the share of good", rawOf(true), 0, raw(0.25), ratio(0.75)},
		"nothing":           {"nothing returned is nothing known", rawOf(true), 0, raw(1).with(kRaw, number()), unknown(measure.NoData, "raw: returned nothing")},
		"negative zero":     {"zero", rawOf(false), 0, raw(math.Copysign(0, -1)), ratio(0)},
		"a little below":    {"rounding", rawOf(false), 0, raw(-0.01), ratio(0)},
		"a little above":    {"rounding", rawOf(true), 0, raw(1.01), ratio(0)},
		"below":             {"no ratio", rawOf(false), 0, raw(-0.011), unknown(measure.OutOfRange, "raw: -0.011 is no ratio between 0 and 1")},
		"percent":           {"no ratio", rawOf(true), 0, raw(99.9), unknown(measure.OutOfRange, "raw: 99.9 is no ratio between 0 and 1")},
		"NaN":               {"no number", rawOf(true), 0, raw(math.NaN()), unknown(measure.NotFinite, "raw: returned NaN")},
		"several":           {"never the first of a list", rawOf(true), 0, raw(1).with(kRaw, number(1, 0)), unknown(measure.SeveralSeries, "raw: returned 2 series, want 1: aggregate with sum()")},
		"no sample time":    {"of another time", rawOf(true), 0, raw(1).with(kNewest, number()), unseen(unknown(measure.NoData, "sample time: no sample of the series is fresh enough to be seen"))},
		"recorded":          {"its extremes within minutes", recordedOf(false), 0, raw(0.2).with(kLow, number(0.1)).with(kHigh, number(0.3)), between(ratio(0.2), 0.1, 0.3)},
		"recorded success":  {"the least of good is the most of bad", recordedOf(true), 0, raw(0.75).with(kLow, number(0.5)).with(kHigh, number(1)), between(ratio(0.25), 0, 0.5)},
		"recorded, hour":    {"only the judge window is acted on", recordedOf(false), time.Hour, raw(0.2).with(kLow, number(0.1)), ratio(0.2)},
		"no extremes":       {"the age of the newest sample tells", recordedOf(false), 0, raw(0.2).with(kLow, number()).with(kHigh, number()), ratio(0.2)},
		"extremes not told": {"a source that flaps is not believed when it is not seen to", recordedOf(false), 0, raw(0.2).with(kHigh, fails(measure.Partial)), unknown(measure.Partial, "highest: "+ofTheSource)},
		"extremes are NaN":  {"no number", recordedOf(false), 0, raw(0.2).with(kLow, number(math.NaN())), unknown(measure.NotFinite, "lowest: returned NaN")},
		"a flap out of it":  {"clamped like the ratio itself", recordedOf(false), 0, raw(1).with(kLow, number(-3)).with(kHigh, number(7)), between(ratio(1), 0, 1)},
	})
}

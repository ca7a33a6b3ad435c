package measure_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// hosts is one series for each host; values go with a, b, c and so on, and NaN
// at the place of one leaves it out.
var absent = math.Inf(-1)

func hosts(vs ...float64) measure.Reading {
	var r measure.Reading
	for i, v := range vs {
		if v != absent {
			metric := model.Metric{"host": model.LabelValue(rune('a' + i))}
			r.Series = append(r.Series, measure.Sample{Metric: metric, Value: v})
		}
	}
	return r
}

func byHost(name string) *spec.Query {
	return &spec.Query{Expr: "sum by (host) (increase(" + name + "[{{.window}}]))"}
}

func groupedOf(part kind) spec.Objective {
	o := objective()
	o.GroupBy = []string{"host"}
	o.Indicator = spec.Indicator{Total: byHost("all"), AbsentBadZero: true}
	if part == kGood {
		o.Indicator.Good = byHost("good")
	} else {
		o.Indicator.Bad = byHost("bad")
	}
	return o
}

func groupedRaw() spec.Objective {
	o := objective()
	o.GroupBy = []string{"host"}
	o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg by (host) (avg_over_time(up[{{.window}}]))"}, RawSuccess: true}
	return o
}

// groups is a measurement with groups a, b and so on, and sums over those that
// are known.
func groups(whole measure.Measurement, gs ...measure.Measurement) measure.Measurement {
	for i, g := range gs {
		if g.Detail != "left out" {
			whole.Groups = append(whole.Groups, measure.NamedGroup{Name: fmt.Sprintf(`host="%c"`, 'a'+i), Measurement: g})
		}
	}
	return whole
}

var leftOut = measure.Measurement{Detail: "left out"}

// worst is a whole whose ratio is that of its worst group.
func worst(m measure.Measurement, ratio float64) measure.Measurement {
	m.ErrorRatio = ratio
	return m
}

func TestAnswerOfGroups(t *testing.T) {
	s := seconds(sampleAt)
	two := answers{kBad: hosts(1, 20), kTotal: hosts(100, 100), kNewest: hosts(s, s), kResets: hosts(0, 0)}
	good := answers{kGood: hosts(99, 80), kTotal: hosts(100, 100), kNewest: hosts(s, s), kResets: hosts(0, 0)}
	raw := answers{kRaw: hosts(1, 0.5), kNewest: hosts(s, s)}
	many := make([]float64, 1001)
	older := known(99, 100)
	older.SampleAt = sampleAt.Add(-time.Minute)
	withOlder := worst(groups(known(179, 200), older, known(80, 100)), 0.2)
	withOlder.SampleAt = older.SampleAt
	unlabelled := measure.Reading{Series: []measure.Sample{{Value: s}}}
	twice := hosts(100, 100)
	twice.Series = append(twice.Series, twice.Series[0])

	runAnswers(t, map[string]answerCase{
		"bad":                          {"each group has its own ratio, and the worst is shown", groupedOf(kBad), 0, two, worst(groups(known(179, 200), known(99, 100), known(80, 100)), 0.2)},
		"good":                         {"each group has its own ratio, and the worst is shown", groupedOf(kGood), 0, good, worst(groups(known(179, 200), known(99, 100), known(80, 100)), 0.2)},
		"raw":                          {"a ratio has no events", groupedRaw(), 0, raw, groups(ratio(0.5), ratio(0), ratio(0.5))},
		"no bad in one":                {"no error has happened there yet", groupedOf(kBad), 0, two.with(kBad, hosts(1)), worst(groups(known(199, 200), known(99, 100), known(100, 100)), 0.01)},
		"no bad at all":                {"no error has happened yet", groupedOf(kBad), 0, two.with(kBad, hosts()), groups(known(200, 200), known(100, 100), known(100, 100))},
		"no good in one":               {"a series that is missing is no outage", groupedOf(kGood), 0, good.with(kGood, hosts(99)), worst(groups(known(99, 100), known(99, 100), unknown(measure.NoData, "good: returned nothing for this group")), 0.01)},
		"no total in one":              {"the groups are those of the total", groupedOf(kBad), 0, two.with(kTotal, hosts(100)), worst(groups(known(99, 100), known(99, 100)), 0.01)},
		"no total":                     {"nothing returned is nothing known", groupedOf(kBad), 0, two.with(kTotal, hosts()), measure.Measurement{Reason: measure.NoData, Detail: "returned nothing"}},
		"NaN in one":                   {"one group does not spoil the others", groupedOf(kBad), 0, two.with(kBad, hosts(math.NaN(), 20)), worst(groups(known(80, 100), unknown(measure.NotFinite, "bad: returned NaN"), known(80, 100)), 0.2)},
		"negative in one":              {"one group does not spoil the others", groupedOf(kBad), 0, two.with(kTotal, hosts(-1, 100)), worst(groups(known(80, 100), unknown(measure.OutOfRange, "total: -1 is a negative count"), known(80, 100)), 0.2)},
		"none is known":                {"the whole says nothing of any of them", groupedOf(kBad), 0, two.with(kBad, hosts(200, math.NaN())), unseen(groups(measure.Measurement{}, unknown(measure.OutOfRange, "bad: 200 exceeds the total by more than 1 %"), unknown(measure.NotFinite, "bad: returned NaN")))},
		"idle in one":                  {"known, and compare makes it low traffic", groupedOf(kBad), 0, two.with(kTotal, hosts(0, 100)).with(kBad, hosts(absent, 20)), worst(groups(known(80, 100), known(0, 0), known(80, 100)), 0.2)},
		"a sample older in one":        {"each group has its own age, the whole the oldest", groupedOf(kBad), 0, two.with(kNewest, hosts(s-60, s)), withOlder},
		"a sample not to be seen":      {"the group has vanished", groupedOf(kBad), 0, two.with(kNewest, hosts(absent, s)), worst(groups(known(80, 100), leftOut, known(80, 100)), 0.2)},
		"no sample to be seen":         {"all have vanished", groupedOf(kBad), 0, two.with(kNewest, hosts()), measure.Measurement{Reason: measure.NoData, Detail: "sample time: returned nothing"}},
		"other samples to be seen":     {"all have vanished, and others start", groupedOf(kBad), 0, two.with(kNewest, hosts(absent, absent, s)), measure.Measurement{Reason: measure.NoData, Detail: "sample time: no sample of any group is fresh enough to be seen"}},
		"no such label":                {"the age of a group cannot be told", groupedOf(kBad), 0, two.with(kNewest, unlabelled), measure.Measurement{Reason: measure.QueryError, Detail: "sample time: the series of the total have no label host, so the age of a group cannot be told"}},
		"sample times failed":          {"nobody knows how old any is", groupedOf(kBad), 0, two.with(kNewest, fails(measure.SourceError)), measure.Measurement{Reason: measure.SourceError, Detail: "sample time: " + ofTheSource}},
		"no time in one":               {"one group does not spoil the others", groupedOf(kBad), 0, two.with(kNewest, hosts(0, s)), worst(groups(known(80, 100), unseen(unknown(measure.NotFinite, "sample time: 0 is no time")), known(80, 100)), 0.2)},
		"bad failed":                   {"a fault of the source is of all groups", groupedOf(kBad), 0, two.with(kBad, fails(measure.Partial)), measure.Measurement{Reason: measure.Partial, Detail: ofTheSource}},
		"a group twice":                {"never the first of a list", groupedOf(kBad), 0, two.with(kTotal, twice), measure.Measurement{Reason: measure.SeveralSeries, Detail: `returned two series for the group host="a"`}},
		"more than can be added":       {"the sum is shown, and is a number", groupedOf(kBad), 0, two.with(kTotal, hosts(1e308, 1e308)).with(kBad, hosts()), groups(known(math.MaxFloat64, math.MaxFloat64), known(1e308, 1e308), known(1e308, 1e308))},
		"resets in one":                {"one group does not spoil the others", groupedOf(kBad), 0, two.with(kResets, hosts(4, 3)), worst(groups(known(80, 100), unknown(measure.CounterResets, "a counter was reset 4 times in the judge window"), known(80, 100)), 0.2)},
		"resets not told":              {"nobody knows whether the counts mean anything", groupedOf(kBad), 0, two.with(kResets, fails(measure.SourceError)), measure.Measurement{Reason: measure.SourceError, Detail: "resets: " + ofTheSource}},
		"a thousand and one":           {"nobody meant to promise anything to that many", groupedOf(kBad), 0, two.with(kTotal, hosts(many...)), measure.Measurement{Reason: measure.SeveralSeries, Detail: "returned 1001 groups, want 1000 at most"}},
		"raw, one out of range":        {"one group does not spoil the others", groupedRaw(), 0, raw.with(kRaw, hosts(99, 0.5)), groups(ratio(0.5), unknown(measure.OutOfRange, "raw: 99 is no ratio between 0 and 1"), ratio(0.5))},
		"raw, a sample not to be seen": {"the group has vanished", groupedRaw(), 0, raw.with(kNewest, hosts(s)), groups(ratio(0), ratio(0))},
	})
}

func TestManyGroups(t *testing.T) {
	totals := make([]float64, 1000)
	for i := range totals {
		totals[i] = 1
	}
	times := make([]float64, 1000)
	for i := range times {
		times[i] = seconds(sampleAt)
	}
	say := answers{kTotal: hosts(totals...), kNewest: hosts(times...)}
	m := batched(t, measure.At("checkout", groupedOf(kBad), time.Hour, now), 1, say.to(t))[0]
	if !m.Known() || len(m.Groups) != 1000 || m.Total != 1000 {
		t.Errorf("%d groups, %g events, %s: want 1000 of both", len(m.Groups), m.Total, m.Reason)
	}
}

// The total alone shows coverage and traffic.
func TestAnswerOfTotals(t *testing.T) {
	coverage := func(o spec.Objective) measure.Query {
		for _, q := range measure.Pass(service(o), now) {
			if q.ID == measure.CoverageID("checkout", o, 6*time.Hour, now) {
				return q
			}
		}
		t.Fatal("no coverage is asked")
		return measure.Query{}
	}
	first := now.Add(-20 * time.Minute)
	nothing := measure.Measurement{Reason: measure.NoData, Detail: "total: returned nothing"}
	since := nothing
	since.FirstAt = first
	cases := map[string]struct {
		reason string
		o      spec.Objective
		say    answers
		want   measure.Measurement
	}{
		"total":                {"the events", badOf(true), answers{kTotal: number(7)}, measure.Measurement{HasEvents: true, Total: 7}},
		"rate":                 {"the events", rateOf(), answers{kTotal: number(7)}, measure.Measurement{HasEvents: true, Total: 2100}},
		"raw":                  {"there was something", rawOf(true), answers{kRaw: number(0.5)}, measure.Measurement{}},
		"nothing":              {"the oldest sample says since when", badOf(true), answers{kOldest: number(seconds(first))}, since},
		"raw, nothing":         {"the oldest sample says since when", rawOf(true), answers{kOldest: number(seconds(first))}, since},
		"nothing at all":       {"nobody knows since when", badOf(true), nil, nothing},
		"oldest not told":      {"nobody knows since when", badOf(true), answers{kOldest: fails(measure.SourceError)}, nothing},
		"oldest is no time":    {"nobody knows since when", badOf(true), answers{kOldest: number(-1)}, nothing},
		"failed":               {"a fault asks for nothing more", badOf(true), answers{kTotal: fails(measure.SourceError), kOldest: number(seconds(first))}, measure.Measurement{Reason: measure.SourceError, Detail: "total: " + ofTheSource}},
		"negative":             {"no count", badOf(true), answers{kTotal: number(-7)}, measure.Measurement{Reason: measure.OutOfRange, Detail: "total: -7 is a negative count"}},
		"groups":               {"of each", groupedOf(kBad), answers{kTotal: hosts(7, 8)}, groups(measure.Measurement{HasEvents: true, Total: 15}, measure.Measurement{HasEvents: true, Total: 7}, measure.Measurement{HasEvents: true, Total: 8})},
		"groups, one negative": {"of each", groupedOf(kBad), answers{kTotal: hosts(-7, 8)}, groups(measure.Measurement{HasEvents: true, Total: 8}, measure.Measurement{Reason: measure.OutOfRange, Detail: "total: -7 is a negative count"}, measure.Measurement{HasEvents: true, Total: 8})},
		"groups, nothing":      {"the oldest sample says since when", groupedOf(kBad), answers{kOldest: number(seconds(first))}, measure.Measurement{Reason: measure.NoData, Detail: "total: returned nothing", FirstAt: first}},
		"raw groups":           {"of each", groupedRaw(), answers{kRaw: hosts(1, 0)}, groups(measure.Measurement{}, measure.Measurement{}, measure.Measurement{})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := coverage(tc.o)
			got := batched(t, []measure.Query{q}, 1, tc.say.to(t))[0]
			tc.want.ID, tc.want.AsOf = q.ID, q.ID.At
			for i := range tc.want.Groups {
				tc.want.Groups[i].ID, tc.want.Groups[i].AsOf = q.ID, q.ID.At
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// From a day on, counts that were recorded stand in for the raw samples, if
// they cover the window.
func TestAnswerOfRecordedCounts(t *testing.T) {
	const day = 24 * time.Hour
	recorded := func(part float64) answers {
		return answers{
			kGood: number(1), kBad: number(1), kTotal: number(2), kNewest: number(seconds(sampleAt)),
			kCountTotal: number(100), kCountPart: number(part), kCountTotals: number(288), kCountParts: number(288),
		}
	}
	good, bad := recorded(98), recorded(2)
	fromCounts, fromRaw := known(98, 100), known(1, 2)
	rated := known(86400, 172800)
	runAnswers(t, map[string]answerCase{
		"good":               {"the sums of the counts", goodOf(), day, good, fromCounts},
		"bad":                {"the sums of the counts", badOf(true), day, bad, fromCounts},
		"three days":         {"98 % of three days are recorded", goodOf(), 3 * day, good.with(kCountTotals, number(847)).with(kCountParts, number(847)), fromCounts},
		"an hour":            {"raw samples cost little there", goodOf(), time.Hour, good, fromRaw},
		"98 %":               {"covered", goodOf(), day, good.with(kCountTotals, number(283)).with(kCountParts, number(283)), fromCounts},
		"less than 98 %":     {"not covered", goodOf(), day, good.with(kCountTotals, number(282)).with(kCountParts, number(282)), fromRaw},
		"one more":           {"a window may hold both of its ends", goodOf(), day, good.with(kCountTotals, number(289)).with(kCountParts, number(289)), fromCounts},
		"each minute":        {"counts that overlap would be added up several times", goodOf(), day, good.with(kCountTotals, number(1440)).with(kCountParts, number(1440)), fromRaw},
		"none":               {"nothing is recorded", goodOf(), day, good.with(kCountTotals, number()), fromRaw},
		"two of them":        {"two servers record one series", goodOf(), day, good.with(kCountTotals, number(288, 288)), fromRaw},
		"fewer good":         {"good must be of the same time as total", goodOf(), day, good.with(kCountParts, number(287)), fromRaw},
		"fewer bad":          {"an absent bad is recorded as zero, so one that is not was not counted", badOf(true), day, bad.with(kCountParts, number(3)), fromRaw},
		"no bad":             {"half a rule file is loaded", badOf(true), day, bad.with(kCountPart, number()).with(kCountParts, number()), fromRaw},
		"no bad, not zero":   {"where absent is not zero nothing can be recorded", badOf(false), day, bad, fromRaw},
		"bad not told":       {"the raw samples may be", badOf(true), day, bad.with(kCountPart, fails(measure.SourceError)), fromRaw},
		"total not a number": {"the raw samples may be", goodOf(), day, good.with(kCountTotal, number(math.NaN())), fromRaw},
		"good exceeds total": {"the raw samples may be right", goodOf(), day, good.with(kCountPart, number(200)), fromRaw},
		"a rate":             {"what is recorded are counts, whatever the query measures", rateOf(), day, bad, fromCounts},
		"a rate, raw":        {"a rate is a count when it is multiplied by its window", rateOf(), day, bad.with(kCountTotals, number()), rated},
		"no sample time":     {"of another time, recorded or not", goodOf(), day, good.with(kNewest, number()), unseen(unknown(measure.NoData, "sample time: no sample of the series is fresh enough to be seen"))},
		"raw is not asked":   {"what would fail is not needed", goodOf(), day, good.with(kTotal, fails(measure.SourceError)), fromCounts},
	})
}

func TestGroupNames(t *testing.T) {
	values := map[string]string{"host": `a"b\c`, "zone": "", "x.y": "ü"}
	name := measure.GroupName([]string{"host", "x.y", "zone"}, func(label string) string { return values[label] })
	if want := `host="a\"b\\c", "x.y"="ü", zone=""`; name != want {
		t.Errorf("got %s, want %s", name, want)
	}
	if diff := cmp.Diff(values, measure.GroupLabels(name)); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "host", `host="a`, `{host="a"}`, "\xff"} {
		if got := measure.GroupLabels(bad); got != nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzGroupNames(f *testing.F) {
	f.Add("host", "a", "zone", `"b"`)
	f.Add("without", "\x00\n", "x.y", "\xff")
	f.Fuzz(func(t *testing.T, label1, value1, label2, value2 string) {
		if label1 == label2 || !utf8.ValidString(label1+value1+label2+value2) || label1 == "" || label2 == "" {
			t.Skip()
		}
		values := map[string]string{label1: value1, label2: value2}
		name := measure.GroupName([]string{label1, label2}, func(label string) string { return values[label] })
		if strings.Contains(name, "\n") {
			t.Errorf("%q is of two lines", name)
		}
		if got := measure.GroupLabels(name); got != nil && label1 != "__name__" && label2 != "__name__" {
			if diff := cmp.Diff(values, got); diff != "" {
				t.Errorf("%s is read back otherwise (-want +got):\n%s", name, diff)
			}
		}
	})
}

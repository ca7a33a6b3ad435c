package measure_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// seriesOf is one series of an answer.
func seriesOf(value float64, labels ...string) measure.Sample {
	s := measure.Sample{Metric: model.Metric{}, Value: value}
	for i := 0; i < len(labels); i += 2 {
		s.Metric[model.LabelName(labels[i])] = model.LabelValue(labels[i+1])
	}
	return s
}

func TestBreakdownOf(t *testing.T) {
	by := []string{"version", "zone"}
	row := func(number float64, values ...string) measure.BreakdownRow {
		return measure.BreakdownRow{Values: values, Number: number}
	}
	reading := func(all ...measure.Sample) measure.Reading { return measure.Reading{Series: all} }
	tests := map[string]struct {
		reason string
		r      measure.Reading
		labels []string
		want   measure.Breakdown
	}{
		"Rows": {
			"the largest first, whatever the source's order",
			reading(seriesOf(0.1, "version", "v1", "zone", "a"), seriesOf(0.4, "version", "v2", "zone", "a"), seriesOf(-2, "version", "v2", "zone", "b")), by,
			measure.Breakdown{Rows: []measure.BreakdownRow{row(0.4, "v2", "a"), row(0.1, "v1", "a"), row(-2, "v2", "b")}},
		},
		"Equal": {
			"equal numbers by their values, so that the bytes of a prompt are the same",
			reading(seriesOf(1, "version", "b", "zone", "a"), seriesOf(1, "version", "a", "zone", "z")), by,
			measure.Breakdown{Rows: []measure.BreakdownRow{row(1, "a", "z"), row(1, "b", "a")}},
		},
		"LabelMissing": {
			"a series without a listed label has it empty, as in PromQL",
			reading(seriesOf(1, "zone", "a")), by,
			measure.Breakdown{Rows: []measure.BreakdownRow{row(1, "", "a")}},
		},
		"NoLabels": {"one number of the whole", reading(seriesOf(7)), nil, measure.Breakdown{Rows: []measure.BreakdownRow{{Values: []string{}, Number: 7}}}},
		"Nothing":  {"no series is an answer: nothing of the kind happens", reading(), by, measure.Breakdown{}},
		"Unlisted": {
			"two pods of one version are not added up: nobody measured that number",
			reading(seriesOf(1, "version", "v1", "pod", "a"), seriesOf(1, "version", "v1", "pod", "b")), []string{"version"},
			measure.Breakdown{Reason: measure.SeveralSeries},
		},
		"UnlistedNaN": {
			"nor where one of them has no number",
			reading(seriesOf(math.NaN(), "version", "v1", "pod", "a"), seriesOf(1, "version", "v1", "pod", "b")), []string{"version"},
			measure.Breakdown{Reason: measure.SeveralSeries},
		},
		"NotFinite": {
			"a version without traffic has no share; the others have",
			reading(seriesOf(math.NaN(), "version", "v1"), seriesOf(math.Inf(1), "version", "v2"), seriesOf(0.3, "version", "v3")), []string{"version"},
			measure.Breakdown{Rows: []measure.BreakdownRow{row(0.3, "v3")}, Dropped: 2},
		},
		"AllNotFinite": {
			"no rows would read as nothing happens",
			reading(seriesOf(math.NaN(), "version", "v1")), []string{"version"}, measure.Breakdown{Reason: measure.NotFinite},
		},
		"Histogram": {
			"a native histogram is not one number",
			reading(seriesOf(1, "version", "v1"), measure.Sample{Metric: model.Metric{"version": "v2"}, Histogram: true}), []string{"version"},
			measure.Breakdown{Reason: measure.NotAVector},
		},
		"Partial": {
			"an incomplete answer has rows that are too small",
			measure.Reading{Series: []measure.Sample{seriesOf(1, "version", "v1")}, Reason: measure.Partial}, []string{"version"},
			measure.Breakdown{Reason: measure.Partial},
		},
		"MinusZero": {"one spelling of zero", reading(seriesOf(math.Copysign(0, -1))), nil, measure.Breakdown{Rows: []measure.BreakdownRow{{Values: []string{}, Number: 0}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Name, tc.want.Labels = "by", tc.labels
			got := measure.BreakdownOf("by", tc.labels, tc.r)
			if diff := gocmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, r := range got.Rows {
				if r.Number == 0 && math.Signbit(r.Number) {
					t.Error("minus zero is shown")
				}
			}
		})
	}
}

func TestBreakdownIsBounded(t *testing.T) {
	var all []measure.Sample
	for i := range 1000 {
		all = append(all, seriesOf(float64(i), "path", strings.Repeat("x", i)))
	}
	b := measure.BreakdownOf("by path", []string{"path"}, measure.Reading{Series: all})
	if len(b.Rows) != measure.MaxBreakdownRows || b.Omitted != 1000-measure.MaxBreakdownRows || b.Rows[0].Number != 999 {
		t.Errorf("%d rows from %v, %d omitted", len(b.Rows), b.Rows[0].Number, b.Omitted)
	}
}

// The order in which a source answers is no information, and must not be one.
func TestBreakdownIgnoresTheOrderOfSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"", "a", "b", "ü", "a\x00b"})
		series := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) measure.Sample {
			s := seriesOf(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(-1)})).Draw(t, "value"),
				"a", words.Draw(t, "a"), "b", words.Draw(t, "b"), "c", words.Draw(t, "c"))
			s.Histogram = rapid.IntRange(0, 40).Draw(t, "histogram") == 0
			return s
		}), 0, 70).Draw(t, "series")
		labels := []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "labels")]
		want := measure.BreakdownOf("x", labels, measure.Reading{Series: series})
		shuffled := slices.Clone(series)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := measure.BreakdownOf("x", labels, measure.Reading{Series: shuffled})
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if n := len(got.Rows) + got.Omitted + got.Dropped; got.Reason == "" && n != len(series) {
			t.Fatalf("%d of %d series are accounted for", n, len(series))
		}
		sorted := slices.IsSortedFunc(got.Rows, func(a, b measure.BreakdownRow) int {
			return cmp.Or(cmp.Compare(b.Number, a.Number), slices.Compare(a.Values, b.Values))
		})
		if !sorted || len(got.Rows) > measure.MaxBreakdownRows {
			t.Fatalf("%d rows, sorted: %v", len(got.Rows), sorted)
		}
	})
}

// FuzzBreakdown reads series as a source would send them.
func FuzzBreakdown(f *testing.F) {
	f.Add(`[{"Metric":{"version":"v1"},"Value":1},{"Metric":{"version":"v1"},"Value":2}]`, "version")
	f.Add(`[{"Metric":{"a":"\u202e"},"Value":1e308},{"Metric":null,"Value":-0.0}]`, "a,b")
	f.Fuzz(func(t *testing.T, series, labels string) {
		var all []measure.Sample
		if json.Unmarshal([]byte(series), &all) != nil {
			return
		}
		by := strings.Split(labels, ",")
		b := measure.BreakdownOf("x", by, measure.Reading{Series: all})
		if len(b.Rows) > measure.MaxBreakdownRows || b.Reason != "" && len(b.Rows) > 0 {
			t.Errorf("%d rows, reason %q", len(b.Rows), b.Reason)
		}
		for _, r := range b.Rows {
			if len(r.Values) != len(by) || math.IsNaN(r.Number) || math.IsInf(r.Number, 0) {
				t.Errorf("row %v", r)
			}
		}
	})
}

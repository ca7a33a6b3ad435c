package measure_test

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

func TestSetDoesNotBelieveTwoAnswers(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now}
	one := measure.Measurement{ID: id, Good: 1, Total: 1, HasEvents: true}
	two := measure.Measurement{ID: id, Total: 1, HasEvents: true, ErrorRatio: 1}
	none := measure.Measurement{ID: id, Reason: measure.NoData}
	refused := measure.Measurement{ID: id, Reason: measure.SourceRefused}
	flapping := one
	flapping.High = 1
	group := func(m measure.Measurement) measure.Measurement {
		return measure.Measurement{ID: id, Groups: []measure.NamedGroup{{Name: `host="a"`, Measurement: m}}}
	}
	cases := map[string]struct {
		reason string
		ms     []measure.Measurement
		want   measure.Reason
	}{
		"equal":                  {"the same answer twice is one answer", []measure.Measurement{one, one}, ""},
		"differ":                 {"neither is believed", []measure.Measurement{one, two}, measure.SourceError},
		"unknown, known":         {"unknown stays", []measure.Measurement{none, one}, measure.NoData},
		"known, unknown":         {"whatever the order", []measure.Measurement{one, none}, measure.NoData},
		"nothing":                {"what was not asked is unknown", nil, measure.NotMeasured},
		"unknown, differ":        {"unknown stays", []measure.Measurement{none, one, two}, measure.NoData},
		"differ, unknown":        {"whatever the order", []measure.Measurement{one, two, refused}, measure.SourceRefused},
		"unknown between":        {"whatever the order", []measure.Measurement{one, refused, two}, measure.SourceRefused},
		"extremes differ":        {"a ratio that flaps is another answer", []measure.Measurement{one, flapping}, measure.SourceError},
		"groups differ":          {"the groups are the answer", []measure.Measurement{group(one), group(two)}, measure.SourceError},
		"a group is unknown":     {"what one does not know, the other did not say", []measure.Measurement{group(measure.Measurement{ID: id}), group(none)}, measure.SourceError},
		"groups are equal":       {"the same answer twice is one answer", []measure.Measurement{group(two), group(two)}, ""},
		"a group is there twice": {"the groups are the answer", []measure.Measurement{group(one), {ID: id}}, measure.SourceError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := measure.NewSet(tc.ms).Get(id).Reason; got != tc.want {
				t.Errorf("%s: reason %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSetKnowsNoOrder(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now}
	rapid.Check(t, func(t *rapid.T) {
		var ms []measure.Measurement
		for range rapid.IntRange(1, 5).Draw(t, "answers") {
			m := measure.Measurement{ID: id, Source: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "source")}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				m.Reason = rapid.SampledFrom([]measure.Reason{
					measure.NoData, measure.SourceError, measure.SourceRefused, measure.Unstable,
				}).Draw(t, "reason")
				m.Detail = rapid.SampledFrom([]string{"", "words"}).Draw(t, "detail")
				m.FirstAt = now.Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "first")) * time.Hour)
			case 1:
				m.HasEvents, m.Total, m.Good = true, 10, float64(rapid.IntRange(9, 10).Draw(t, "good"))
			case 2:
				m.Low, m.High = 0, float64(rapid.IntRange(0, 1).Draw(t, "high"))
			case 3:
				g := measure.Measurement{ID: id, Reason: rapid.SampledFrom([]measure.Reason{"", measure.NoData}).Draw(t, "group")}
				m.Groups = []measure.NamedGroup{{Name: `host="a"`, Measurement: g}}
			}
			ms = append(ms, m)
		}
		want := measure.NewSet(ms).Get(id)
		for _, m := range ms {
			if !m.Known() && want.Known() {
				t.Fatalf("an unknown answer was taken for the known one beside it: %+v", ms)
			}
		}
		r := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<20).Draw(t, "seed"))))
		r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		if diff := cmp.Diff(want, measure.NewSet(ms).Get(id)); diff != "" {
			t.Fatalf("the order matters:\n%s", diff)
		}
	})
}

// A set that is filled anew knows nothing of what it held.
func TestRefilledSetForgets(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now}
	other := id
	other.Service = "search"
	set := measure.NewSet([]measure.Measurement{{ID: id, Total: 1}, {ID: other, Total: 2}})
	set.Refill([]measure.Measurement{{ID: other, Total: 3}})
	if got := set.Get(id).Reason; got != measure.NotMeasured {
		t.Errorf("what is gone is %q", got)
	}
	if got := set.Get(other); !got.Known() || got.Total != 3 {
		t.Errorf("got %+v, want the new answer, which contradicts none", got)
	}
}

func TestTotalOnlyIsAnotherIdentity(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now, TotalOnly: true}
	set := measure.NewSet([]measure.Measurement{{ID: id, Total: 9, HasEvents: true}})
	id.TotalOnly = false
	if m := set.Get(id); m.Known() {
		t.Errorf("a total alone was taken for a ratio: %+v", m)
	}
	id.TotalOnly = true
	if m := set.Get(id.From(1)); m.Known() {
		t.Errorf("one vantage point was taken for another: %+v", m)
	}
}

func TestGroupOfAMeasurement(t *testing.T) {
	id := measure.ID{Service: "checkout", Window: time.Minute, At: now}
	a := measure.Measurement{ID: id, Source: "main", HasEvents: true, Good: 1, Total: 2, ErrorRatio: 0.5}
	known := measure.Measurement{
		ID: id, Source: "main", AsOf: now, HasEvents: true, Good: 1, Total: 2, ErrorRatio: 0.5,
		Groups: []measure.NamedGroup{{Name: `host="a"`, Measurement: a}},
	}
	unknown := measure.Measurement{ID: id, Source: "main", Reason: measure.Partial, Detail: "words"}
	cases := map[string]struct {
		reason string
		m      measure.Measurement
		group  string
		want   measure.Measurement
	}{
		"whole":            {"no name is the whole", known, "", known},
		"group":            {"its own numbers", known, `host="a"`, a},
		"absent":           {"a group that is not there has no data", known, `host="b"`, measure.Measurement{ID: id, Source: "main", AsOf: now, Reason: measure.NoData, Detail: `nothing of the group host="b"`}},
		"unknown":          {"where nothing is known, nothing is known of a group", unknown, `host="a"`, unknown},
		"no groups at all": {"a group that is not there has no data", measure.Measurement{ID: id}, `host="b"`, measure.Measurement{ID: id, Reason: measure.NoData, Detail: `nothing of the group host="b"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.m.Of(tc.group)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSourceFaults(t *testing.T) {
	want := map[measure.Reason]bool{
		measure.SourceError: true, measure.SourceRefused: true, measure.Partial: true, measure.ClockSkew: true,
		measure.NoData: false, measure.NotFinite: false, measure.SeveralSeries: false, measure.NotAVector: false,
		measure.OutOfRange: false, measure.CounterResets: false, measure.Unstable: false,
		measure.QueryError: false, measure.NotMeasured: false, "": false,
	}
	for r, fault := range want {
		if r.SourceFault() != fault {
			t.Errorf("%q is a fault of the source: %t, want %t", r, r.SourceFault(), fault)
		}
	}
}

func TestInstantIsWhatPrometheusKeeps(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	got := measure.Instant(time.Date(2026, 3, 1, 13, 0, 0, 1999999, berlin))
	if want := now.Add(time.Millisecond); got != want {
		t.Errorf("got %v, want %v, equal as keys of a map", got, want)
	}
}

func closeTo(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

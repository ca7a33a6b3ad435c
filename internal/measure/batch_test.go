package measure_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func chunkOf(n int) func(string, time.Duration) int {
	return func(string, time.Duration) int { return n }
}

// pass is what n services of one shape ask at once.
func pass(n int) []measure.Query {
	services := members(n)
	plans := measure.Compile(services, nil)
	var qs []measure.Query
	for _, svc := range services {
		qs = append(qs, plans.Service(svc.Name).Pass(now)...)
	}
	return qs
}

func TestRequestsAreGroupedAndOrdered(t *testing.T) {
	for n, chunk := range map[int]int{1: 100, 7: 3, 100: 100, 101: 100, 250: 100, 40: 1, 5: 0} {
		b := measure.NewBatch(pass(n))
		rs := b.Requests(chunkOf(chunk))
		// The newest; total, bad and resets of 5m; total and bad of 30m, 1h and
		// 6h; how many counts of 30d; three coverages, and the hour before.
		const expressions = 1 + 3 + 3*2 + 1 + 3 + 1
		size := max(chunk, 1)
		if want := expressions * ((n + size - 1) / size); len(rs) != want {
			t.Errorf("%d services in chunks of %d: %d requests, want %d", n, chunk, len(rs), want)
		}
		asks := 0
		for i, r := range rs {
			asks += r.Members
			if r.Members > size || r.Shape == "" || r.Single != "" {
				t.Errorf("%+v: %d members of %d at most, with a shape", r, r.Members, size)
			}
			if i > 0 && rs[i-1].Window > r.Window {
				t.Errorf("%s is asked before %s: short windows come first", rs[i-1].Window, r.Window)
			}
		}
		if asks != n*expressions {
			t.Errorf("%d services: %d asks, want %d", n, asks, n*expressions)
		}
		again := measure.NewBatch(pass(n)).Requests(chunkOf(chunk))
		if diff := cmp.Diff(texts(rs), texts(again)); diff != "" {
			t.Errorf("another batch of the same queries sends others:\n%s", diff)
		}
	}
}

func texts(rs []measure.Request) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.At.String()+" "+r.Expr)
	}
	return out
}

func TestChunkIsAskedByShapeAndWindow(t *testing.T) {
	seen := map[time.Duration]bool{}
	rs := measure.NewBatch(pass(10)).Requests(func(shape string, window time.Duration) int {
		seen[window] = true
		if strings.Contains(shape, "s0001") {
			t.Errorf("the shape %s names a member", shape)
		}
		if window > time.Hour {
			return 5
		}
		return 10
	})
	for _, r := range rs {
		if want := map[bool]int{true: 5, false: 10}[r.Window > time.Hour]; r.Members != want {
			t.Errorf("%d members over %s, want %d", r.Members, r.Window, want)
		}
	}
	want := []time.Duration{0, 5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 720 * time.Hour}
	if got := slices.SortedFunc(maps.Keys(seen), func(a, b time.Duration) int { return int(a - b) }); !slices.Equal(got, want) {
		t.Errorf("asked for windows %v, want %v", got, want)
	}
}

// What cannot be asked together is asked alone, and says why.
func TestUnprovedExpressionsAreAskedAlone(t *testing.T) {
	o := objective()
	o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: `avg(avg_over_time(up{job="a"}[{{.window}}])) or vector(0)`}}
	other := o
	other.ID = "other"
	other.Indicator = spec.Indicator{Raw: &spec.Query{Expr: `avg(avg_over_time(up{job="b"}[{{.window}}])) or vector(0)`}}
	alone := 0
	for _, r := range measure.NewBatch(measure.Pass(service(o, other), now)).Requests(chunkOf(100)) {
		if strings.Contains(r.Expr, "vector(0)") {
			alone++
			if r.Members != 1 || r.Single == "" || r.Shape != "" {
				t.Errorf("%+v, want one member and the reason why", r)
			}
		}
	}
	if alone == 0 {
		t.Error("nothing was asked alone")
	}
}

// halving asks like measure/prom: what fails as a whole is halved until one
// member is left.
func halving(b *measure.Batch, chunk int, ask func(measure.Request) measure.Reading) []measure.Measurement {
	var put func(measure.Request)
	put = func(r measure.Request) {
		answer := ask(r)
		if halves := b.Halve(r); answer.Reason != "" && len(halves) > 0 {
			for _, half := range halves {
				put(half)
			}
			return
		}
		b.Put(r, answer)
	}
	for range maxRounds {
		for _, r := range b.Requests(chunkOf(chunk)) {
			put(r)
		}
	}
	return b.Measurements()
}

// each answers a value for each member of a request, found by its name.
func each(r measure.Request, value float64) measure.Reading {
	var out measure.Reading
	for i := range 1000 {
		name := fmt.Sprintf("s%04d", i)
		if strings.Contains(r.Expr, name) {
			metric := model.Metric{}
			if r.Members > 1 {
				metric["service"] = model.LabelValue(name)
			}
			out.Series = append(out.Series, measure.Sample{Metric: metric, Value: value})
		}
	}
	return out
}

func TestOneMemberFailsAlone(t *testing.T) {
	const n, sick = 40, "s0017"
	qs, sent := pass(n), 0
	ms := halving(measure.NewBatch(qs), 40, func(r measure.Request) measure.Reading {
		sent++
		if strings.Contains(r.Expr, sick) && strings.Contains(r.Expr, "increase") {
			return fails(measure.QueryError)
		}
		return each(r, 1)
	})
	for i, m := range ms {
		if m.ID != qs[i].ID {
			t.Fatalf("measurement %d is of %+v, want %+v", i, m.ID, qs[i].ID)
		}
		want := measure.Reason("")
		if m.ID.Service == sick {
			want = measure.QueryError
		}
		if m.Reason != want {
			t.Errorf("%+v: %q %s, want %q", m.ID, m.Reason, m.Detail, want)
		}
	}
	if sent > 400 {
		t.Errorf("%d requests for one sick member of %d", sent, n)
	}
	b := measure.NewBatch(qs[:1])
	for _, r := range b.Requests(chunkOf(100)) {
		if halves := b.Halve(r); halves != nil {
			t.Errorf("a request of one member was halved: %+v", halves)
		}
	}
}

func TestHalvesAreTheWhole(t *testing.T) {
	b := measure.NewBatch(pass(7))
	for _, r := range b.Requests(chunkOf(100)) {
		members := 0
		for _, half := range b.Halve(r) {
			members += half.Members
			if !half.At.Equal(r.At) || half.Window != r.Window || half.Shape != r.Shape || half.Members > 4 {
				t.Errorf("half %+v of %+v", half, r)
			}
		}
		if members != r.Members {
			t.Errorf("the halves of %d members have %d", r.Members, members)
		}
	}
}

func TestCutOffBatchKnowsNothing(t *testing.T) {
	qs := pass(3)
	b := measure.NewBatch(qs)
	for i, m := range b.Measurements() {
		if m.Reason != measure.NotMeasured || m.ID != qs[i].ID {
			t.Errorf("before anything was asked: %+v", m)
		}
	}
	rs := b.Requests(chunkOf(100))
	b.Put(rs[0], each(rs[0], 1))
	b.Requests(chunkOf(100))
	for i, m := range b.Measurements() {
		if m.Reason != measure.NotMeasured || m.ID != qs[i].ID {
			t.Errorf("after one of %d answers: %+v", len(rs), m)
		}
	}
	if ms := measure.NewBatch(nil).Measurements(); len(ms) != 0 {
		t.Errorf("nothing was measured as %+v", ms)
	}
	var none measure.Query
	none.ID = is(time.Hour, 0, false)
	if m := batched(t, []measure.Query{none}, 1, nil)[0]; m.Reason != measure.NotMeasured || m.ID != none.ID {
		t.Errorf("a query that nobody compiled is %+v", m)
	}
}

// drawReading is any answer, sane or not.
func drawReading(t *rapid.T, r measure.Request) measure.Reading {
	if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
		return fails(rapid.SampledFrom([]measure.Reason{measure.SourceError, measure.Partial, measure.QueryError}).Draw(t, "reason"))
	}
	var out measure.Reading
	for range rapid.SampledFrom([]int{1, 1, 1, 1, 0, 2, 3}).Draw(t, "series") {
		s := measure.Sample{
			Value: rapid.SampledFrom([]float64{
				0, 1, 0.5, 100, 101, 102, 288, 1e308, 5e-324, -1, math.Copysign(0, -1), math.NaN(), math.Inf(1),
				seconds(sampleAt), seconds(sampleAt), seconds(sampleAt),
			}).Draw(t, "value"),
			Histogram: rapid.IntRange(0, 30).Draw(t, "histogram") == 0, Metric: model.Metric{},
		}
		for _, label := range []model.LabelName{"host", "service"} {
			if v := rapid.SampledFrom([]model.LabelValue{"", "a", "b", "s0001"}).Draw(t, string(label)); v != "" {
				s.Metric[label] = v
			}
		}
		out.Series = append(out.Series, s)
	}
	return out
}

func anyObjective(t *rapid.T) spec.Objective {
	o := rapid.SampledFrom([]spec.Objective{
		goodOf(), badOf(true), badOf(false), rateOf(), rawOf(true), rawOf(false), recordedOf(false), recordedOf(true),
		groupedOf(kGood), groupedOf(kBad), groupedRaw(),
	}).Draw(t, "objective")
	return o
}

// checkKnown: a known measurement has nothing in it that is no count, no ratio
// or no time.
func checkKnown(t fatal, m measure.Measurement, grouped bool) {
	t.Helper()
	for _, g := range m.Groups {
		checkKnown(t, g.Measurement, false)
	}
	if !m.Known() {
		if m.HasEvents || m.Good != 0 || m.Total != 0 || m.ErrorRatio != 0 || m.Low != 0 || m.High != 0 || len(m.Groups) > 0 {
			t.Fatalf("an unknown measurement has numbers: %+v", m)
		}
		return
	}
	for _, v := range []float64{m.Good, m.Total, m.ErrorRatio, m.Low, m.High} {
		if math.IsNaN(v) || math.IsInf(v, 0) || math.Signbit(v) {
			t.Fatalf("%g is in a known measurement: %+v", v, m)
		}
	}
	if m.ErrorRatio > 1 || m.High > 1 || m.Low > m.High || m.Good > m.Total && !m.ID.TotalOnly {
		t.Fatalf("no ratio: %+v", m)
	}
	if !m.ID.TotalOnly && !grouped && m.SampleAt.IsZero() {
		t.Fatalf("known, of a time that is not: %+v", m)
	}
	if bad := m.Total - m.Good; m.HasEvents && !m.ID.TotalOnly && !grouped && m.Total > 0 && !closeTo(bad/m.Total, m.ErrorRatio, 1e-9) {
		t.Fatalf("the ratio is not that of the counts: %+v", m)
	}
}

// Whatever a source answers, the batch ends, and no fault of an answer makes
// anything known that was not.
func TestAnyAnswerIsSafe(t *testing.T) {
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		o := anyObjective(t)
		qs := measure.Pass(service(o), now)
		said := map[string]measure.Reading{}
		first := batched(t, qs, 1, func(r measure.Request) measure.Reading {
			said[r.Expr+r.At.String()] = drawReading(t, r)
			return said[r.Expr+r.At.String()]
		})
		fault := fails(rapid.SampledFrom([]measure.Reason{measure.SourceError, measure.Partial}).Draw(t, "fault"))
		failing := rapid.SampledFrom(sorted(said)).Draw(t, "failing")
		second := batched(t, qs, 1, func(r measure.Request) measure.Reading {
			key := r.Expr + r.At.String()
			if _, ok := said[key]; !ok { // The raw samples, in place of recorded counts.
				said[key] = drawReading(t, r)
			}
			if key == failing {
				return fault
			}
			return said[key]
		})
		for i, m := range first {
			if m.ID != qs[i].ID {
				t.Fatalf("measurement %d is of %+v, want %+v", i, m.ID, qs[i].ID)
			}
			grouped := len(o.GroupBy) > 0
			checkKnown(t, m, grouped)
			checkKnown(t, second[i], grouped)
			seen[m.Known()]++
			counted := m.ID.Window >= 24*time.Hour && !m.ID.TotalOnly
			if second[i].Known() && !counted {
				if diff := cmp.Diff(m, second[i]); diff != "" {
					t.Fatalf("the failure of %s changed a known measurement:\n%s", failing, diff)
				}
			}
		}
	})
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("%d known and %d unknown measurements: the test tests little", seen[true], seen[false])
	}
}

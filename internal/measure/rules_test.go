package measure_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/lab/prom"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const month = 30 * 24 * time.Hour

// counting is an objective of bad and total, each with its own rules.
func counting(edit ...func(*spec.Objective)) spec.Objective {
	o := spec.Objective{
		ID: "availability", Target: 0.99, Window: month, JudgeWindow: 5 * time.Minute,
		Indicator: spec.Indicator{
			Bad:   &spec.Query{Expr: `sum(increase(requests_total{code="500"}[{{.window}}]))`},
			Total: &spec.Query{Expr: `sum(increase(requests_total[{{.window}}]))`}, AbsentBadZero: true,
		},
	}
	for _, e := range edit {
		e(&o)
	}
	return o
}

func setOf(os ...spec.Objective) spec.Set {
	return spec.Set{Services: []spec.Service{{Name: "checkout", Objectives: os}}}
}

func TestRules(t *testing.T) {
	rule := func(record, expr, id string) measure.RecordingRule {
		return measure.RecordingRule{Record: record, Expr: expr, Labels: map[string]string{measure.CountLabel: id}}
	}
	rates := counting(func(o *spec.Objective) {
		o.ID = "rates"
		o.Indicator = spec.Indicator{
			Good:  &spec.Query{Expr: `sum(rate(ok_total[{{.window}}]))`, Source: "probe"},
			Total: &spec.Query{Expr: `sum(rate(all_total[{{.window}}]))`, Source: "probe"},
		}
	})
	plainID := measure.CountID("checkout", "availability", counting().Indicator)
	ratesID := measure.CountID("checkout", "rates", rates.Indicator)
	want := measure.RuleGroups{Groups: []measure.RuleGroup{
		{Source: "", Name: "setpoint-slo-counts-1", Interval: "5m", Rules: []measure.RecordingRule{
			rule(measure.CountTotal, `sum(increase(requests_total[5m]))`, plainID),
			rule(measure.CountBad, `(sum(increase(requests_total{code="500"}[5m]))) or on () 0 * (sum(increase(requests_total[5m])))`, plainID),
		}},
		{Source: "probe", Name: "setpoint-slo-counts-probe-1", Interval: "5m", Rules: []measure.RecordingRule{
			rule(measure.CountTotal, `300 * (sum(rate(all_total[5m])))`, ratesID),
			rule(measure.CountGood, `300 * (sum(rate(ok_total[5m])))`, ratesID),
		}},
	}}
	got := measure.Rules(setOf(counting(), rates))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a source has groups of its own, and a rate becomes a count (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Groups[1:], got.Of("probe").Groups); diff != "" {
		t.Errorf("of one source (-want +got):\n%s", diff)
	}
}

func TestRulesLeaveOut(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*spec.Objective)
		want   string
	}{
		"raw": {
			reason: "the mean of ratios is not the ratio of a window",
			edit:   func(o *spec.Objective) { o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: `a[{{.window}}]`}} },
			want:   "a ratio holds no counts",
		},
		"groups": {
			reason: "each group would be a series of one name",
			edit:   func(o *spec.Objective) { o.GroupBy = []string{"host", "zone"} },
			want:   "judged by group (host, zone)",
		},
		"absent bad is unknown": {
			reason: "over a month one absent step is not seen",
			edit:   func(o *spec.Objective) { o.Indicator.AbsentBadZero = false },
			want:   "absent bad is not zero",
		},
		"long slices": {
			reason: "a step of 5 minutes holds no slice of an hour",
			edit:   func(o *spec.Objective) { o.Slice = time.Hour },
			want:   "time slices of 1h are longer than the 5m",
		},
		"short windows": {
			reason: "rules that nothing reads only cost",
			edit:   func(o *spec.Objective) { o.Window = 6 * time.Hour },
			want:   "no window of it is as long as 1d",
		},
		"no series": {
			reason: "such a query is not asked either",
			edit:   func(o *spec.Objective) { o.Indicator.Total = &spec.Query{Expr: "vector(1)"} },
			want:   "its total selects no series",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := measure.Rules(setOf(counting(tc.edit)))
			if len(got.Groups) != 0 || len(got.Uncounted) != 1 {
				t.Fatalf("%s: got %+v, want nothing recorded and one left out", tc.reason, got)
			}
			if u := got.Uncounted[0]; u.Service != "checkout" || u.Objective != "availability" || !strings.Contains(u.Reason, tc.want) {
				t.Errorf("%s: got %+v, want %q", tc.reason, u, tc.want)
			}
		})
	}
}

func TestRuleGroupsAreBounded(t *testing.T) {
	var services []spec.Service
	for i := range 130 {
		services = append(services, spec.Service{Name: fmt.Sprintf("s%03d", i), Objectives: []spec.Objective{counting()}})
	}
	g := measure.Rules(spec.Set{Services: services})
	sizes, seen := []int{}, map[string]bool{}
	for _, group := range g.Groups {
		sizes = append(sizes, len(group.Rules))
		if seen[group.Name] {
			t.Errorf("two groups are called %s", group.Name)
		}
		seen[group.Name] = true
		for i := 0; i < len(group.Rules); i += 2 {
			if group.Rules[i].Labels[measure.CountLabel] != group.Rules[i+1].Labels[measure.CountLabel] {
				t.Errorf("%s: the counts of one objective are in two groups", group.Name)
			}
		}
	}
	if diff := cmp.Diff([]int{100, 100, 60}, sizes); diff != "" {
		t.Errorf("Prometheus runs the rules of a group one after another (-want +got):\n%s", diff)
	}
}

func ruleFile(t *testing.T, set spec.Set) []byte {
	t.Helper()
	text, err := yaml.Marshal(measure.Rules(set))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRulesPassPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; it is part of Debian's package prometheus")
	}
	odd := counting(func(o *spec.Objective) {
		o.ID = `quo"te/ü`
		o.Indicator.Total = &spec.Query{Expr: `requests_total{path=~"/a|/b\\d+"}`, Counter: true}
		o.Indicator.Bad = &spec.Query{Expr: "sum(increase(requests_total{code=~\"5..\"}[{{.window}}])) # bad\n or vector(0)"}
	})
	commented := counting(func(o *spec.Objective) {
		o.ID = "commented"
		o.Indicator.Total = &spec.Query{Expr: "sum(rate(requests_total[{{.window}}])) # all"}
	})
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, ruleFile(t, setOf(counting(), odd, commented)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("6 rules found")) {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// spiky is a month of requests of which 99 % come in 1 % of the time, in 72
// spikes of 6 minutes anywhere. In the spikes 1 in 1,000 fails, else 4 in 100.
type spiky struct {
	*prom.Engine

	end time.Time
	// ratio is what really happened.
	ratio float64
}

const (
	scrape   = 15 * time.Second
	inSpike  = 10_000
	perSpike = 24
)

func newSpiky(t *testing.T) spiky {
	t.Helper()
	e, err := prom.New(prom.Options{Dir: t.TempDir(), Block: 2 * month})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	r := rand.New(rand.NewPCG(1, 2))
	steps := int(month/scrape) + perSpike
	spike := make([]float64, steps)
	for range 72 {
		at, failing := r.IntN(steps-perSpike), 0.0005+0.001*r.Float64()
		for i := range perSpike {
			spike[at+i] = failing
		}
	}
	b := e.Bulk([]labels.Labels{
		labels.FromStrings("__name__", "requests_total", "code", "200"),
		labels.FromStrings("__name__", "requests_total", "code", "500"),
	})
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var good, bad float64
	for i := range steps {
		switch {
		case spike[i] > 0:
			failed := math.Round(inSpike * spike[i])
			good, bad = good+inSpike-failed, bad+failed
		case r.Float64() < 0.04:
			bad++
		default:
			good++
		}
		if err := b.Scrape(end.Add(time.Duration(i-steps+1)*scrape), []float64{good, bad}); err != nil {
			t.Fatal(err)
		}
	}
	return spiky{e, end, bad / (good + bad)}
}

// measured is the whole window of the objective, and every expression that was
// asked for it.
func (e spiky) measured(t *testing.T, o spec.Objective) (measure.Measurement, []string) {
	t.Helper()
	b := measure.NewBatch(measure.At("checkout", o, month, e.end))
	var asked []string
	for {
		rs := b.Requests(func(string, time.Duration) int { return 100 })
		if len(rs) == 0 {
			return b.Measurements()[0], asked
		}
		for _, r := range rs {
			asked = append(asked, r.Expr)
			v, ok, err := e.Value(t.Context(), r.Expr, r.At)
			answer := measure.Reading{}
			switch {
			case err != nil:
				answer = measure.Reading{Reason: measure.QueryError, Detail: err.Error()}
			case ok:
				answer.Series = []measure.Sample{{Value: v, At: r.At}}
			}
			b.Put(r, answer)
		}
	}
}

// record evaluates the rules of an objective as a server would have.
func (e spiky) record(t *testing.T, file []byte, of time.Duration) {
	t.Helper()
	if err := e.Record(t.Context(), file, e.end.Add(-of), e.end); err != nil {
		t.Fatal(err)
	}
}

func usesCounts(asked []string) bool {
	return strings.Contains(strings.Join(asked, "\n"), "sum_over_time("+measure.CountTotal)
}

func asksRaw(asked []string) bool {
	return strings.Contains(strings.Join(asked, "\n"), "requests_total["+spec.FormatDuration(month)+"]")
}

func TestRecordedCounts(t *testing.T) {
	e := newSpiky(t)
	t.Run("equal the raw query", e.equalRaw)
	t.Run("are not used where they do not fit", e.unfit)
}

func (e spiky) equalRaw(t *testing.T) {
	variants := map[string]spec.Objective{
		"bad": counting(),
		"good, per second": counting(func(o *spec.Objective) {
			o.ID = "rates"
			o.Indicator = spec.Indicator{
				Good:  &spec.Query{Expr: `sum(rate(requests_total{code!="500"}[{{.window}}]))`},
				Total: &spec.Query{Expr: `sum(rate(requests_total[{{.window}}]))`},
			}
		}),
	}
	for name, o := range variants {
		raw, asked := e.measured(t, o)
		if !raw.Known() || usesCounts(asked) {
			t.Fatalf("%s: before anything is recorded: %+v by %q", name, raw, asked)
		}
		e.record(t, ruleFile(t, setOf(o)), month)
		got, asked := e.measured(t, o)
		if !got.Known() || asksRaw(asked) || !usesCounts(asked) {
			t.Fatalf("%s: with all counts recorded: %+v by %q", name, got, asked)
		}
		within(t, name+": error ratio", raw.ErrorRatio, got.ErrorRatio, 0.005)
		within(t, name+": total", raw.Total, got.Total, 0.01)
		within(t, name+": error ratio of what happened", e.ratio, got.ErrorRatio, 0.005)
	}
	// What recorded ratios would have said.
	e.record(t, []byte(`groups: [{name: r, interval: 5m, rules: [{record: ratio, expr: `+
		`'sum(increase(requests_total{code="500"}[5m])) / sum(increase(requests_total[5m]))'}]}]`), month)
	raw, _ := e.measured(t, counting(func(o *spec.Objective) { o.ID = "not-recorded" }))
	mean, _, err := e.Value(t.Context(), "avg_over_time(ratio[30d])", e.end)
	if err != nil || mean < 5*raw.ErrorRatio {
		t.Errorf("the mean of ratios is %v (%v), the ratio %v: the traffic of this test is not uneven", mean, err, raw.ErrorRatio)
	}
	t.Logf("error ratio %.6f; the mean of 5m ratios says %.6f, %.0f times as much", raw.ErrorRatio, mean, mean/raw.ErrorRatio)
}

func (e spiky) unfit(t *testing.T) {
	other := counting(func(o *spec.Objective) {
		o.Indicator.Bad = &spec.Query{Expr: `sum(increase(requests_total{code=~"5.."}[{{.window}}]))`}
	})
	short := counting(func(o *spec.Objective) { o.ID = "short" })
	e.record(t, ruleFile(t, setOf(short)), month*97/100)
	// What was wrongly called good, and is called bad now.
	turned := counting(func(o *spec.Objective) { o.ID = "turned" })
	before := turned
	before.Indicator.Good, before.Indicator.Bad = turned.Indicator.Bad, nil
	e.record(t, ruleFile(t, setOf(before)), month)
	half := counting(func(o *spec.Objective) { o.ID = "half" })
	all := string(ruleFile(t, setOf(half)))
	e.record(t, []byte(all[:strings.LastIndex(all, "- record")]), month)
	cases := map[string]struct {
		reason string
		o      spec.Objective
		counts bool
	}{
		"turned":   {"a count of good is none of bad, although their queries are one", turned, false},
		"half":     {"a file that was cut off has the total alone", half, false},
		"recorded": {"all of it is there, see above", counting(), true},
		"changed":  {"the rules are of the query before it was changed", other, false},
		"short":    {"97 % of a window are not the window", short, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, asked := e.measured(t, tc.o)
			if !m.Known() || m.ErrorRatio == 0 || tc.counts && !usesCounts(asked) || asksRaw(asked) == tc.counts {
				t.Errorf("%s: %+v by %q", tc.reason, m, asked)
			}
		})
	}
}

func within(t *testing.T, what string, want, got, share float64) {
	t.Helper()
	off := math.Abs(got-want) / want
	if off > share || math.IsNaN(off) {
		t.Errorf("%s: got %v, want %v: off by %.3f %%, at most %.3f %%", what, got, want, 100*off, 100*share)
	}
	t.Logf("%s: %v for %v, off by %.4f %%", what, got, want, 100*off)
}

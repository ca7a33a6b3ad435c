package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// overridden loads base.yaml, whose shop-availability has a good and a total,
// with this override of it.
func overridden(t *testing.T, override string) spec.Objective {
	t.Helper()
	text := strings.Replace(`
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  objectives: {shop-availability: OVERRIDE}
`, "OVERRIDE", override, 1)
	set := load(t, read(t, "base.yaml"), spec.File{Name: "override.yaml", Data: []byte(text)})
	return service(t, set, "shop").Objectives[0]
}

func TestVantages(t *testing.T) {
	document := func(source string) spec.Indicator {
		return spec.Indicator{
			Good:  &spec.Query{Expr: `requests_total{code!~"5.."}`, Counter: true, Source: source},
			Total: &spec.Query{Expr: "requests_total", Counter: true, Source: source},
		}
	}
	const ownBad = `{source: probe, bad: 'sum(increase(failed_total[{{.window}}]))', total: sent_total, counter: true}`
	own := func(zero bool) spec.Indicator {
		return spec.Indicator{
			Bad:   &spec.Query{Expr: "sum(increase(failed_total[{{.window}}]))", Source: "probe"},
			Total: &spec.Query{Expr: "sent_total", Counter: true, Source: "probe"}, AbsentBadZero: zero,
		}
	}
	zeroed := document("main")
	zeroed.AbsentBadZero = true
	recorded := func(source string) spec.Indicator {
		return spec.Indicator{Raw: &spec.Query{
			Expr:     `slo:sli_error:ratio_rate{{.window}}{sloth_service="shop", sloth_slo="shop-availability"}`,
			Recorded: true, Source: source,
		}}
	}
	cases := map[string]struct {
		reason, override string
		want             []spec.Indicator
	}{
		"None":      {"The SLO's queries, at the first source.", `{}`, []spec.Indicator{document("")}},
		"Moved":     {"One name moves the SLO's queries.", `{sources: [main]}`, []spec.Indicator{document("main")}},
		"Several":   {"Each further name asks the same elsewhere.", `{sources: [main, {source: probe}]}`, []spec.Indicator{document("main"), document("probe")}},
		"OwnOther":  {"A mapping may ask something else.", `{sources: [main, ` + ownBad + `]}`, []spec.Indicator{document("main"), own(true)}},
		"OwnFirst":  {"So may the first.", `{sources: [` + ownBad + `, main]}`, []spec.Indicator{own(true), document("main")}},
		"OwnSame":   {"A probe's metrics may stand beside the server's.", `{sources: [probe, ` + ownBad + `]}`, []spec.Indicator{document("probe"), own(true)}},
		"AbsentBad": {"absentBad is about all of them.", `{absentBad: unknown, sources: [main, ` + ownBad + `]}`, []spec.Indicator{document("main"), own(false)}},
		"Raw": {
			"A raw ratio beside counts, which an absent bad does not concern.", `{absentBad: zero, sources: [main, {source: probe, raw: ' avg(avg_over_time(ok[{{.window}}])) ', rawType: success}]}`,
			[]spec.Indicator{zeroed, {Raw: &spec.Query{Expr: "avg(avg_over_time(ok[{{.window}}]))", Source: "probe"}, RawSuccess: true}},
		},
		"Recorded":      {"Recorded ratios are a failure ratio at the SLO's source.", `{recorded: sloth}`, []spec.Indicator{recorded("")}},
		"RecordedMoved": {"The first vantage point's are recorded, the others asked.", `{recorded: sloth, sources: [main, probe]}`, []spec.Indicator{recorded("main"), document("probe")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := overridden(t, tc.override).Vantages()
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreTypes(spec.Position{})); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
			for _, v := range got {
				for _, q := range v.Queries() {
					if q.Pos.Line == 0 || q.Check() != nil {
						t.Errorf("query %+v has no place, or fails: %v", q, q.Check())
					}
				}
			}
		})
	}
}

// TestSlothWindowNames: the windows are written as Sloth writes them in the
// names of its rules, for the periods that it ships.
func TestSlothWindowNames(t *testing.T) {
	const day = 24 * time.Hour
	q := overridden(t, `{recorded: sloth}`).Indicator.Raw
	for window, want := range map[time.Duration]string{
		5 * time.Minute: "5m", 30 * time.Minute: "30m", time.Hour: "1h", 2 * time.Hour: "2h", 6 * time.Hour: "6h",
		day: "1d", 3 * day: "3d", 28 * day: "4w", 30 * day: "30d",
	} {
		if got := q.At(window); !strings.HasPrefix(got, "slo:sli_error:ratio_rate"+want+"{") {
			t.Errorf("%s is %s, want the name to end in %s", window, got, want)
		}
	}
}

// TestOneObjectiveIsMoved: the objectives of one SLO share its queries, and an
// override of one is none of the others; what it says wins over the SLO's.
func TestOneObjectiveIsMoved(t *testing.T) {
	text := strings.Replace(string(read(t, "base.yaml").Data), "objectives: [{target: 0.99}]",
		"objectives: [{displayName: good, target: 0.99}, {displayName: better, target: 0.999}, {displayName: best, target: 0.9999}]", 1)
	const remediation = `
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  objectives:
    shop-availability/better: {sources: [probe], absentBad: unknown}
    shop-availability/best: {recorded: sloth}
    shop-availability: {sources: [main, client]}
`
	set := load(t, spec.File{Name: "a", Data: []byte(text)}, spec.File{Name: "b", Data: []byte(remediation)})
	got := map[string]string{}
	for _, o := range service(t, set, "shop").Objectives {
		for _, v := range o.Vantages() {
			got[o.ID] += v.Queries()[0].Source + " "
		}
	}
	want := map[string]string{"shop-availability/best": "main client ", "shop-availability/better": "probe ", "shop-availability/good": "main client "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
}

// fixed is a reader that finds one objective in any document of its format.
type fixed spec.Objective

func (fixed) APIVersion() string { return "fixed/v1" }

func (f fixed) Read(docs []spec.Document) (spec.Reading, spec.Faults) {
	o := spec.Objective(f)
	o.Pos = docs[0].Pos
	return spec.Reading{Objectives: []spec.ObjectiveReading{{Service: "shop", Objective: o, Digests: []string{docs[0].Digest()}}}}, nil
}

// sliced is an objective with slices of ten minutes, which the other readers
// make of Timeslices.
func sliced() fixed {
	return fixed{
		ID: "slow", SLO: "slow", Target: 0.99, Window: 30 * 24 * time.Hour, Slice: 10 * time.Minute,
		Indicator: spec.Indicator{Raw: &spec.Query{Expr: "avg_over_time((max(latency) < bool 1)[{{.window}}:10m])"}, RawSuccess: true},
	}
}

func TestSlices(t *testing.T) {
	short := sliced()
	short.Window, short.Slice = 5*time.Minute, 10*time.Minute
	const override = "---\napiVersion: setpoint.dev/v1alpha1\nkind: Remediation\nmetadata: {name: shop}\nspec:\n  service: shop\n  objectives:\n    slow:\n"
	const long = "      burnRates: [{short: 10m, long: 1h, factor: 14, page: true}]\n"
	cases := map[string]struct {
		reason string
		reader fixed
		text   string
		want   []string
	}{
		"Defaults": {
			"The defaults are shorter than the slices, and nobody said so.", sliced(), "",
			[]string{
				`f:1: objective "slow": the default judge window is 5m, shorter than the SLO's time slices of 10m: give judgeWindow, 10m or more, in spec.objectives of a Remediation`,
				`f:1: objective "slow": the default short window of a burn rate is 5m, shorter than the SLO's time slices of 10m: give burnRates with windows of 10m or more in spec.objectives of a Remediation`,
			},
		},
		"Given": {
			"What is given is pointed at.", sliced(), override + "      judgeWindow: 9m\n      burnRates:\n        - {short: 9m, long: 10m, factor: 14}\n",
			[]string{
				"f:10: spec.objectives.slow.judgeWindow: is 9m, shorter than the SLO's time slices of 10m: give 10m or more",
				"f:12: spec.objectives.slow.burnRates[0].short: is 9m, shorter than the SLO's time slices of 10m: give 10m or more",
			},
		},
		"Own": {
			"The SLO's own window too.", short, override + long + "      judgeWindow: 10m\n",
			[]string{
				`f:1: objective "slow": the SLO's own window is 5m, shorter than the SLO's time slices of 10m: make it longer, or the slices shorter`,
				"f:10: spec.objectives.slow.burnRates[0]: has long window 1h, longer than the SLO's own window 5m",
			},
		},
		"Recorded": {
			"Sloth records no slices.", sliced(), override + long + "      judgeWindow: 30m\n      recorded: sloth\n",
			[]string{
				"f:10: spec.objectives.slow.burnRates[0].short: is 10m, over which Sloth records nothing: use 5m, 30m, 1h, 2h, 6h, 1d, 3d, and 28d or 30d as the SLO's own window",
				"f:12: spec.objectives.slow.recorded: is for Occurrences: Sloth records no time slices, so its ratio would be another promise: remove it",
			},
		},
		"Fits": {"A window of one slice is one.", sliced(), override + long + "      judgeWindow: 10m\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := spec.File{Name: "f", Data: []byte("apiVersion: fixed/v1\n" + tc.text)}
			_, err := spec.Load([]spec.File{file}, []spec.Reader{tc.reader})
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), message(err)); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGroupBy(t *testing.T) {
	grouped := func(total, bad string, by ...string) fixed {
		return fixed{
			ID: "slow", SLO: "slow", Target: 0.99, Window: 30 * 24 * time.Hour, GroupBy: by,
			Indicator: spec.Indicator{Bad: &spec.Query{Expr: bad}, Total: &spec.Query{Expr: total}},
		}
	}
	const byHost, byPod = "sum by (host) (increase(a[{{.window}}]))", "sum by (pod) (increase(b[{{.window}}]))"
	const unproved = "label_replace(increase(a[{{.window}}]), 'host', '$1', 'instance', '(.*)')"
	cases := map[string]struct {
		reason   string
		reader   fixed
		override string
		want     []string
		err      string
	}{
		"Found":      {"The total says it.", grouped(byHost, byHost+" or vector(0)"), "{}", []string{"host"}, ""},
		"None":       {"One series is no group.", grouped("sum(increase(a[{{.window}}]))", "sum(increase(b[{{.window}}]))"), "{}", nil, ""},
		"Documented": {"The document may know more than a query proves.", grouped(unproved, unproved, "host"), "{}", []string{"host"}, ""},
		"Denied":     {"But not what a query disproves.", grouped(byHost, byPod, "host"), "{}", nil, `f:1: SLO "slow": bad is grouped by (pod), and the SLO by (host): group all queries of an objective alike`},
		"Own": {
			"Its own queries must prove it.", grouped(byHost, byHost, "host"),
			"{sources: [main, {source: probe, bad: 'increase(a[{{.window}}])', total: '" + byHost + "'}]}", nil,
			"f:7: spec.objectives.slow.sources[1].bad: is not grouped by (host), as the first vantage point is: aggregate it alike, e.g. sum by (host) (…)",
		},
		"Recorded": {"Recorded ratios are grouped as what they are recorded of.", grouped(byHost, byHost), "{recorded: sloth}", []string{"host"}, ""},
		"OwnFirst": {
			"The first vantage point says it, whatever the SLO had.", grouped(byHost, byHost),
			"{sources: [{source: probe, bad: '" + byPod + "', total: '" + byPod + "'}]}", []string{"pod"}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: fixed/v1\n---\napiVersion: setpoint.dev/v1alpha1\nkind: Remediation\nmetadata: {name: shop}\n" +
				"spec: {service: shop, objectives: {\nslow: " + tc.override + "}}\n"
			set, err := spec.Load([]spec.File{{Name: "f", Data: []byte(text)}}, []spec.Reader{tc.reader})
			if message(err) != tc.err {
				t.Fatalf("%s got %v, want %s", tc.reason, err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, service(t, set, "shop").Objectives[0].GroupBy); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVantagesExample loads the example of every key, with the SLO it is about.
func TestVantagesExample(t *testing.T) {
	set := load(t, read(t, "base.yaml"), read(t, "vantages.yaml"))
	o := service(t, set, "shop").Objectives[0]
	checkMeasurable(t, o)
	if got := len(o.Vantages()); got != 4 {
		t.Errorf("%d vantage points, want 4", got)
	}
}

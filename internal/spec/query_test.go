package spec_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestQueryAt(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  spec.Query
		window time.Duration
		want   string
	}{
		"Placeholder": {
			reason: "{{.window}} is replaced wherever it stands, with or without spaces.",
			query:  spec.Query{Expr: `sum(rate(a[{{.window}}])) / sum(rate(b[{{ .window }}] offset 1m))`},
			window: 5 * time.Minute,
			want:   `sum(rate(a[5m])) / sum(rate(b[5m] offset 1m))`,
		},
		"Counter": {
			reason: "A plain selector is wrapped.",
			query:  spec.Query{Expr: ` a{b="c"} `, Counter: true},
			window: time.Hour,
			want:   `sum(increase(a{b="c"}[1h]))`,
		},
		"Mixed": {
			reason: "A window of odd length is written in Prometheus's units.",
			query:  spec.Query{Expr: "a", Counter: true},
			window: 90*time.Second + 500*time.Millisecond,
			want:   `sum(increase(a[1m30s500ms]))`,
		},
		"Recorded": {
			reason: "The window stands in the name, as Sloth's rules write it.",
			query:  spec.Query{Expr: `slo:sli_error:ratio_rate{{.window}}{sloth_slo="a"}`, Recorded: true},
			window: 24 * time.Hour,
			want:   `slo:sli_error:ratio_rate1d{sloth_slo="a"}`,
		},
		"Dollar": {
			reason: "The replacement is no pattern.",
			query:  spec.Query{Expr: `a{b=~"c$"}[{{.window}}]`},
			window: time.Minute,
			want:   `a{b=~"c$"}[1m]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.query.At(tc.window)); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuerySelectors(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  spec.Query
		want   []string
		err    string
	}{
		"Counter": {
			reason: "The selector itself.",
			query:  spec.Query{Expr: `a{b="c"}`, Counter: true},
			want:   []string{`a{b="c"}`},
		},
		"Several": {
			reason: "Each once, sorted, without the range.",
			query:  spec.Query{Expr: `sum(rate(b[{{.window}}])) / (sum(rate(a{x!="y"}[{{.window}}])) + sum(rate(b[{{.window}}])))`},
			want:   []string{`a{x!="y"}`, `b`},
		},
		"Offset": {
			reason: "With the offset: the sample is as old as it is.",
			query:  spec.Query{Expr: `sum(increase(a[{{.window}}] offset 3m))`},
			want:   []string{`a offset 3m`},
		},
		"Subquery": {
			reason: "Inside a subquery too.",
			query:  spec.Query{Expr: `sum_over_time((count(a < 0.75))[{{.window}}:]) or on() vector(0)`},
			want:   []string{`a`},
		},
		"Recorded": {
			reason: "The one of a judge window, where the name holds it.",
			query:  spec.Query{Expr: `slo:sli_error:ratio_rate{{.window}}{sloth_slo="a"}`, Recorded: true},
			want:   []string{`slo:sli_error:ratio_rate5m{sloth_slo="a"}`},
		},
		"None": {
			reason: "A constant has none.",
			query:  spec.Query{Expr: `vector(1)`},
		},
		"Broken": {
			reason: "What does not parse has none to tell.",
			query:  spec.Query{Expr: `sum(`},
			err:    "is not valid PromQL: 1:5: parse error: unclosed left parenthesis",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.query.Selectors()
			if text := message(err); text != tc.err {
				t.Fatalf("%s error %q, want %q", tc.reason, text, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSelectorsAt: what depends on the window does so in the selectors too.
func TestSelectorsAt(t *testing.T) {
	for expr, want := range map[string]string{
		`a:ratio_rate{{.window}}{b="c"}`: `a:ratio_rate3d{b="c"}`,
		`sum(rate(a[{{.window}}]))`:      `a`,
		`sum(rate(a[{{.window}}] offset {{.window}})) - sum(rate(b[{{.window}}]))`: `a offset 3d`,
	} {
		got, err := spec.Query{Expr: expr}.SelectorsAt(3 * 24 * time.Hour)
		if err != nil || got[0] != want {
			t.Errorf("%s: got %v, %v, want %s", expr, got, err, want)
		}
	}
}

func TestCheckRecorded(t *testing.T) {
	const noWindow = "has no {{.window}} in its metric name: write it as ratio_rate{{.window}}, and nowhere else"
	const notPlain = "is no plain selector of recorded ratios: give the bare metric with its labels"
	cases := map[string]struct {
		reason, expr, want string
	}{
		"Sloth":    {"As Sloth records it.", `slo:sli_error:ratio_rate{{.window}}{sloth_service="a", sloth_slo="b"}`, ""},
		"Spaces":   {"Spaces in the placeholder are the same one.", `ratio{{ .window }}`, ""},
		"None":     {"One series for all windows is none of them.", `slo:sli_error:ratio_rate5m`, noWindow},
		"Label":    {"The window of a label is not the name's.", `ratio{window="{{.window}}"}`, noWindow},
		"Twice":    {"Nor is it in both.", `ratio{{.window}}{window="{{.window}}"}`, noWindow},
		"Range":    {"A range is another question.", `ratio_rate5m[{{.window}}]`, "gives a range vector, want an instant vector"},
		"Function": {"So is anything around it.", `sum(ratio_rate{{.window}})`, notPlain},
		"Offset":   {"The past is not the present.", `ratio_rate{{.window}} offset 5m`, notPlain},
		"At":       {"A fixed moment neither.", `ratio_rate{{.window}} @ 5`, "fixes its time with @, so it does not measure the present: remove the modifier"},
		"Variable": {"A variable selects nothing.", `ratio_rate{{.window}}{job="$job"}`, "has the dashboard variable $job in label job: put its value there"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, message(spec.Query{Expr: tc.expr, Recorded: true}.Check())); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCheckedQueryIsMeasurable: whatever Check accepts parses at any window,
// and has a selector that parses by itself.
func TestCheckedQueryIsMeasurable(t *testing.T) {
	pick := func(t *rapid.T, words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	term := func(t *rapid.T) string {
		return pick(t, "sum(", "count by (x) (", "(", "") + pick(t, "rate(", "increase(", "avg_over_time(", "(") +
			pick(t, "a", `b{c="d"}`, `{__name__=~"a.*"}`, "(a < 1)", "1") +
			pick(t, "[{{.window}}]", "[{{ .window }}]", "[5m]", "[{{.window}}:1m]", "[{{.window}}:]", "") +
			pick(t, "", "", " offset 1m", " offset {{.window}}", " @ 5") + ")" + pick(t, ")", "")
	}
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		q := spec.Query{Expr: term(t) + pick(t, "", " or vector(0)", " > 0") + pick(t, "", " / "+term(t))}
		if rapid.IntRange(0, 9).Draw(t, "counter") == 0 {
			q = spec.Query{Expr: pick(t, "a", `b{c="d"}`, "a offset 1m", "sum(a)"), Counter: true}
		}
		if q.Check() != nil {
			return
		}
		accepted++
		for _, w := range []time.Duration{time.Second, 5 * time.Minute, 30 * 24 * time.Hour} {
			if _, err := p.ParseExpr(q.At(w)); err != nil {
				t.Fatalf("%q over %s: %v", q.At(w), w, err)
			}
		}
		if q.At(time.Minute) == q.At(time.Hour) {
			t.Fatalf("%q does not depend on the window", q.Expr)
		}
		selectors, err := q.Selectors()
		if err != nil || len(selectors) == 0 {
			t.Fatalf("%q has no selectors: %v", q.Expr, err)
		}
		for _, c := range q.Counters() {
			if !slices.Contains(selectors, c) {
				t.Fatalf("%q counts by %q, which is none of its selectors %q", q.Expr, c, selectors)
			}
			if _, err := p.ParseExpr("max(resets(" + c + "[5m]))"); err != nil {
				t.Fatalf("counter %q: %v", c, err)
			}
		}
		for _, s := range selectors {
			if _, err := p.ParseExpr("max(timestamp(" + s + "))"); err != nil {
				t.Fatalf("selector %q: %v", s, err)
			}
		}
	})
	if accepted == 0 {
		t.Error("no query was accepted, so nothing was checked")
	}
}

// FuzzQuery: whatever stands in a document, the analysis of it ends, repeats
// itself, and gives PromQL again.
func FuzzQuery(f *testing.F) {
	for _, expr := range []string{
		`sum(rate(a{b="c"}[{{.window}}]))`, `a`, `slo:sli_error:ratio_rate{{.window}}{sloth_slo="x"}`,
		`sum by (x, y) (increase(a[{{.window}}] offset 5m)) - ignoring (z) sum without (w) (b)`,
		`histogram_quantile(0.9, sum by (le) (rate(a_bucket{le="1"}[{{.window}}])))`,
		`sum_over_time((count(a < 0.75))[{{.window}}:]) or on() vector(0)`, `count_values by (a) ("b", c)`, `info(a, {b="c"})`,
		`rate(a[{{.window}}] anchored)`, `a + fill (0) b`, `rate(a[{{.window}} + 5m])`, `{"a.b"}`, `limit_ratio(0.5, a)`, `a # why`,
	} {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		for _, q := range []spec.Query{{Expr: expr}, {Expr: expr, Counter: true}, {Expr: expr, Recorded: true}} {
			names, counters, perSecond := q.Grouping(), q.Counters(), q.PerSecond()
			if !slices.Equal(names, q.Grouping()) || !slices.IsSorted(names) || !slices.IsSorted(counters) {
				t.Fatalf("%+v: grouping %v, counters %v", q, names, counters)
			}
			if q.Check() != nil {
				continue
			}
			if perSecond && (q.Counter || q.Recorded) {
				t.Fatalf("%+v is no rate", q)
			}
			selectors, err := q.Selectors()
			if err != nil || len(selectors) == 0 {
				t.Fatalf("%+v: selectors %v, %v", q, selectors, err)
			}
			if q.At(time.Minute) == q.At(time.Hour) {
				t.Fatalf("%+v does not depend on the window", q)
			}
		}
	})
}

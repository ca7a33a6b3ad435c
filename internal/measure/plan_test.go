package measure_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	goodExpr  = `sum(increase(http_requests_total{code!~"5.."}[{{.window}}]))`
	badExpr   = `sum(increase(http_requests_total{code=~"5.."}[{{.window}}]))`
	totalExpr = `sum(increase(http_requests_total[{{.window}}]))`
)

func objective() spec.Objective {
	return spec.Objective{
		ID: "availability", Target: 0.999, Window: 720 * time.Hour, JudgeWindow: 5 * time.Minute, MinEvents: 50,
		Indicator: spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: totalExpr}},
		BurnRates: spec.DefaultBurnRates(),
	}
}

func service(os ...spec.Objective) spec.Service {
	return spec.Service{Name: "checkout", Objectives: os}
}

// is the identity of a window of the objective above that ends before now.
func is(window, before time.Duration, totalOnly bool) measure.ID {
	return measure.ID{
		Service: "checkout", Objective: "availability", Window: window, At: now.Add(-before), TotalOnly: totalOnly,
	}
}

func ids(qs []measure.Query) []measure.ID {
	out := make([]measure.ID, 0, len(qs))
	for _, q := range qs {
		out = append(out, q.ID)
	}
	return out
}

func TestPassAsksWhatAssessNeeds(t *testing.T) {
	m, h := time.Minute, time.Hour
	cases := map[string]struct {
		reason string
		edit   func(*spec.Objective)
		want   []measure.ID
	}{
		"default pairs": {
			reason: "the judge window is the short window of a pair too, and asked once; the coverage of a long " +
				"window is the judge window at now - window + judgeWindow; the hour before ends where the judge " +
				"window begins",
			edit: func(*spec.Objective) {},
			want: []measure.ID{
				is(5*m, 0, false), is(30*m, 0, false), is(h, 0, false), is(6*h, 0, false), is(720*h, 0, false),
				is(5*m, 55*m, true), is(5*m, 355*m, true), is(5*m, 720*h-5*m, true), is(h, 5*m, true),
			},
		},
		"raw": {
			reason: "a raw indicator has no events, so no traffic that could be lost",
			edit: func(o *spec.Objective) {
				o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg_over_time(up[{{.window}}])"}}
				o.BurnRates = o.BurnRates[:1]
			},
			want: []measure.ID{
				is(5*m, 0, false), is(h, 0, false), is(720*h, 0, false), is(5*m, 55*m, true), is(5*m, 720*h-5*m, true),
			},
		},
		"raw groups": {
			reason: "the hour before shows which groups vanished",
			edit: func(o *spec.Objective) {
				o.GroupBy = []string{"job"}
				o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: "avg by (job) (avg_over_time(up[{{.window}}]))"}}
				o.BurnRates = nil
			},
			want: []measure.ID{is(5*m, 0, false), is(720*h, 0, false), is(5*m, 720*h-5*m, true), is(h, 5*m, true)},
		},
		"judge window of an hour": {
			reason: "the coverage of two hours is the hour before the judge window, and asked once",
			edit: func(o *spec.Objective) {
				o.JudgeWindow = h
				o.BurnRates = []spec.BurnRate{{Short: h, Long: 2 * h, Factor: 2, Page: true}}
			},
			want: []measure.ID{
				is(h, 0, false), is(2*h, 0, false), is(720*h, 0, false), is(h, h, true), is(h, 719*h, true),
			},
		},
		"long window within the judge window": {
			reason: "coverage is never asked of the future",
			edit: func(o *spec.Objective) {
				o.BurnRates = []spec.BurnRate{{Short: m, Long: 2 * m, Factor: 2, Page: true}}
			},
			want: []measure.ID{
				is(m, 0, false), is(2*m, 0, false), is(5*m, 0, false), is(720*h, 0, false),
				is(5*m, 0, true), is(5*m, 720*h-5*m, true), is(h, 5*m, true),
			},
		},
		"no burn rates": {
			reason: "the judge window and the period are always asked",
			edit:   func(o *spec.Objective) { o.BurnRates = nil },
			want:   []measure.ID{is(5*m, 0, false), is(720*h, 0, false), is(5*m, 720*h-5*m, true), is(h, 5*m, true)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			tc.edit(&o)
			qs := measure.Pass(service(o), now.Add(400*time.Microsecond))
			if diff := cmp.Diff(tc.want, ids(qs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, q := range qs {
				if q.Refused != "" {
					t.Errorf("refused: %s", q.Refused)
				}
			}
		})
	}
}

func TestPassOfSeveralVantagePoints(t *testing.T) {
	a, b := objective(), objective()
	a.ID, b.ID = "a", "b"
	a.BurnRates, b.BurnRates = nil, nil
	a.Indicator.Good.Source, a.Indicator.Total.Source = "server", "server"
	probe := spec.Indicator{Raw: &spec.Query{Expr: "avg_over_time(probe_success[{{.window}}])", Source: "probe"}, RawSuccess: true}
	a.Others = []spec.Indicator{probe}
	type want struct {
		Objective string
		Vantage   int
		Source    string
		N         int
	}
	var got []want
	for _, q := range measure.Pass(service(a, b), now) {
		w := want{q.ID.Objective, q.ID.Vantage, q.Source, 1}
		if n := len(got); n > 0 && got[n-1].Objective == w.Objective && got[n-1].Vantage == w.Vantage {
			got[n-1].N++
			continue
		}
		got = append(got, w)
	}
	// The probe has no events, so no hour before.
	if diff := cmp.Diff([]want{{"a", 0, "server", 4}, {"a", 1, "probe", 3}, {"b", 0, "", 4}}, got); diff != "" {
		t.Errorf("in the order of the objectives and their vantage points (-want +got):\n%s", diff)
	}
	at := measure.At("checkout", a, time.Hour, now)
	if len(at) != 2 || at[0].Source != "server" || at[1].Source != "probe" || at[1].ID != at[0].ID.From(1) {
		t.Errorf("at: %+v, want one query for each vantage point", at)
	}
}

func TestExpressionsOfAWindow(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*spec.Objective)
		window time.Duration
		want   []string
	}{
		"judge window": {
			reason: "how often counters were reset is asked beside the judge window",
			edit:   func(*spec.Objective) {}, window: 5 * time.Minute,
			want: []string{
				`max(resets(http_requests_total[5m]))`, `max(timestamp(http_requests_total))`,
				`sum(increase(http_requests_total[5m]))`, `sum(increase(http_requests_total{code!~"5.."}[5m]))`,
			},
		},
		"longer window": {
			reason: "the sample time is that of the instant, whatever the window",
			edit:   func(*spec.Objective) {}, window: time.Hour,
			want: []string{
				`max(timestamp(http_requests_total))`,
				`sum(increase(http_requests_total[1h]))`, `sum(increase(http_requests_total{code!~"5.."}[1h]))`,
			},
		},
		"counter": {
			reason: "a plain selector is wrapped",
			edit: func(o *spec.Objective) {
				o.Indicator = spec.Indicator{
					Bad: &spec.Query{Expr: `errors_total`, Counter: true}, Total: &spec.Query{Expr: `requests_total`, Counter: true},
				}
			}, window: time.Hour,
			want: []string{`max(timestamp(requests_total))`, `sum(increase(errors_total[1h]))`, `sum(increase(requests_total[1h]))`},
		},
		"recorded": {
			reason: "the window stands in the name; its extremes are asked beside the judge window",
			edit: func(o *spec.Objective) {
				o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: `slo:sli_error:ratio_rate{{.window}}{sloth_id="a"}`, Recorded: true}}
			}, window: 5 * time.Minute,
			want: []string{
				`max(max_over_time(slo:sli_error:ratio_rate5m{sloth_id="a"}[3m]))`,
				`max(timestamp(slo:sli_error:ratio_rate5m{sloth_id="a"}))`,
				`min(min_over_time(slo:sli_error:ratio_rate5m{sloth_id="a"}[3m]))`,
				`slo:sli_error:ratio_rate5m{sloth_id="a"}`,
			},
		},
		"recorded, longer": {
			reason: "a recorded ratio of a longer window is asked by its own name, its age by that of the judge window",
			edit: func(o *spec.Objective) {
				o.Indicator = spec.Indicator{Raw: &spec.Query{Expr: `slo:sli_error:ratio_rate{{.window}}`, Recorded: true}}
			}, window: 3 * 24 * time.Hour,
			want: []string{`max(timestamp(slo:sli_error:ratio_rate5m))`, `slo:sli_error:ratio_rate3d`},
		},
		"grouped": {
			reason: "each group has its own age",
			edit: func(o *spec.Objective) {
				o.GroupBy = []string{"host"}
				o.Indicator = spec.Indicator{
					Bad:   &spec.Query{Expr: `sum by (host) (increase(errors_total[{{.window}}]))`},
					Total: &spec.Query{Expr: `sum by (host) (increase(requests_total[{{.window}}]))`},
				}
			}, window: time.Hour,
			want: []string{
				`max by (host) (timestamp(requests_total))`,
				`sum by (host) (increase(errors_total[1h]))`, `sum by (host) (increase(requests_total[1h]))`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			tc.edit(&o)
			got := asked(t, measure.At("checkout", o, tc.window, now), 1)
			if diff := cmp.Diff(tc.want, sorted(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCoverageAsksTheTotalAlone(t *testing.T) {
	var coverage []measure.Query
	for _, q := range measure.Pass(service(objective()), now) {
		if q.ID == measure.CoverageID("checkout", objective(), time.Hour, now) {
			coverage = append(coverage, q)
		}
	}
	want := map[string]time.Duration{
		`sum(increase(http_requests_total[5m]))`: 55 * time.Minute,
		// The oldest sample within the hour is asked because there was no total.
		`min(min_over_time(timestamp(http_requests_total)[1h:1m]) or min_over_time(timestamp(http_requests_total)[1m:1s]))`: 0,
	}
	if diff := cmp.Diff(want, asked(t, coverage, 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	one := func(measure.Request) measure.Reading { return measure.Reading{Series: []measure.Sample{{Value: 7}}} }
	ms := batched(t, coverage, 1, one)
	if len(ms) != 1 || !ms[0].Known() || ms[0].Total != 7 || !ms[0].HasEvents || !ms[0].FirstAt.IsZero() {
		t.Errorf("got %+v, want the total and no time of the first sample, which was not asked", ms)
	}
}

func TestRefusedQueriesAreNotAsked(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     spec.Indicator
		want   string
	}{
		"two sources": {
			reason: "the ratio of two sources' counts is no ratio",
			in: spec.Indicator{
				Good: &spec.Query{Expr: goodExpr, Source: "a"}, Total: &spec.Query{Expr: totalExpr, Source: "b"},
			},
			want: "different sources",
		},
		"no selector": {
			reason: "nothing would tell the age of its samples",
			in:     spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: "vector(1)"}},
			want:   "no selector",
		},
		"no PromQL": {
			reason: "a query that cannot be parsed has no selectors to look at",
			in:     spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Total: &spec.Query{Expr: "sum("}},
			want:   "cannot be parsed",
		},
		"empty": {
			reason: "nothing to ask",
			in:     spec.Indicator{},
			want:   "neither a total nor a raw query",
		},
		"total alone": {
			reason: "a total has no ratio",
			in:     spec.Indicator{Total: &spec.Query{Expr: totalExpr}},
			want:   "",
		},
		"good and bad": {
			reason: "they need not add up",
			in:     spec.Indicator{Good: &spec.Query{Expr: goodExpr}, Bad: &spec.Query{Expr: badExpr}, Total: &spec.Query{Expr: totalExpr}},
			want:   "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objective()
			o.Indicator = tc.in
			qs := measure.At("checkout", o, time.Hour, now)
			if sent := asked(t, qs, 1); len(sent) > 0 {
				t.Errorf("%s: asked %v", tc.reason, sorted(sent))
			}
			for i, m := range batched(t, qs, 1, nil) {
				if m.Reason != measure.QueryError || !strings.Contains(m.Detail, tc.want) || m.ID != qs[i].ID {
					t.Errorf("%s: got %+v, want %q in its words", tc.reason, m, tc.want)
				}
			}
		})
	}
}

func TestPassProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.IntRange(1, 400)
		o := objective()
		o.JudgeWindow = time.Duration(minutes.Draw(t, "judge")) * time.Minute
		o.BurnRates = nil
		for range rapid.IntRange(0, 4).Draw(t, "pairs") {
			o.BurnRates = append(o.BurnRates, spec.BurnRate{
				Short: time.Duration(minutes.Draw(t, "short")) * time.Minute,
				Long:  time.Duration(minutes.Draw(t, "long")) * time.Minute,
			})
		}
		o.Others = make([]spec.Indicator, rapid.IntRange(0, 2).Draw(t, "others"))
		for i := range o.Others {
			o.Others[i] = o.Indicator
		}
		got := ids(measure.Pass(service(o), now))
		if diff := cmp.Diff(got, ids(measure.Pass(service(o), now))); diff != "" {
			t.Fatalf("two plans differ:\n%s", diff)
		}
		seen := map[measure.ID]bool{}
		for _, id := range got {
			if seen[id] {
				t.Fatalf("%+v is asked twice", id)
			}
			seen[id] = true
		}
		need := []measure.ID{measure.CoverageID("checkout", o, o.Window, now), measure.HourBeforeID("checkout", o, now)}
		for _, w := range o.Windows() {
			need = append(need, is(w, 0, false))
		}
		for _, b := range o.BurnRates {
			need = append(need, measure.CoverageID("checkout", o, b.Long, now))
		}
		for _, id := range need {
			for v := range o.Vantages() {
				if id.At.After(now) || !seen[id.From(v)] {
					t.Fatalf("%+v is not asked, or of the future", id.From(v))
				}
			}
		}
	})
}

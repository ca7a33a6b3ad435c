package spec_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func TestReach(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  spec.Query
		want   time.Duration
	}{
		"a counter":           {"counts between the samples inside its window", spec.Query{Expr: `requests_total`, Counter: true}, 0},
		"a rate":              {"likewise", spec.Query{Expr: `sum(rate(requests_total[{{.window}}]))`}, 0},
		"offset":              {"looks at an earlier window", spec.Query{Expr: `sum(rate(requests_total[{{.window}}] offset 3m))`}, 3 * time.Minute},
		"negative offset":     {"looks at a later one", spec.Query{Expr: `sum(rate(requests_total[{{.window}}] offset -3m))`}, 0},
		"a subquery":          {"the first range begins before it", spec.Query{Expr: `avg_over_time((sum(rate(errors[2m])) < 1)[{{.window}}:1m])`}, 2 * time.Minute},
		"a subquery's offset": {"both count", spec.Query{Expr: `avg_over_time((sum(rate(errors[2m] offset 1m)) < 1)[{{.window}}:1m] offset 4m)`}, 7 * time.Minute},
		"the farthest":        {"of all selectors", spec.Query{Expr: `sum(rate(a[{{.window}}])) / sum(rate(b[{{.window}}] offset 1m))`}, time.Minute},
		"its own range":       {"longer than the window", spec.Query{Expr: `sum(rate(a[20m])) + sum(rate(b[{{.window}}]))`}, 15 * time.Minute},
		"anchored":            {"begins with the sample before", spec.Query{Expr: `sum(rate(a[{{.window}}] anchored))`}, 5 * time.Minute},
		"a recorded ratio":    {"is one sample", spec.Query{Expr: `slo:sli_error:ratio_rate{{.window}}`, Recorded: true}, 0},
		"no PromQL":           {"was refused when it was loaded", spec.Query{Expr: `sum(`}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.query.Reach(5 * time.Minute); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestReachHolds: what was measured before a window and its reach changes nothing
// of what the engine answers.
func TestReachHolds(t *testing.T) {
	e := newEngine(t)
	// Scaled, because topk of equal values is either.
	g := grammar{scaled: true, leaves: []string{
		"rate(a[{{.window}}])", "increase(b[{{.window}}])", "rate(c[{{.window}}] offset 3m)", "increase(a[2m])", "rate(b[17m])",
		"sum_over_time((rate(c[2m]))[{{.window}}:1m])", "max_over_time((sum by (x) (rate(a[1m] offset 30s)))[{{.window}}:30s] offset 1m)",
	}}
	looked, needed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		q, window := g.query(t), time.Duration(rapid.IntRange(5, 10).Draw(t, "minutes"))*time.Minute
		reach := q.Reach(window)
		want, err := e.ask(t.Context(), q.At(window))
		if err != nil || len(want) == 0 {
			return
		}
		looked++
		begins := engineNow.Add(-window)
		if got := e.rewritten(t, begins.Add(-reach), q.At(window)); !slices.Equal(values(want), got) {
			t.Fatalf("%s over %s reaches back %s, and what was before that changes %v to %v", q.Expr, window, reach, values(want), got)
		}
		if reach > 0 && !slices.Equal(values(want), e.rewritten(t, begins, q.At(window))) {
			needed++
		}
	})
	if looked < 20 || needed < 5 {
		t.Errorf("%d queries, of which %d look back, prove little", looked, needed)
	}
}

// rewritten asks a database in which everything before an instant is different;
// an error is an answer.
func (e engine) rewritten(t *rapid.T, before time.Time, expr string) []string {
	other := engine{promql: e.promql}
	for _, s := range e.db {
		var samples []chunks.Sample
		it := s.Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			ms, v := it.At()
			if time.UnixMilli(ms).Before(before) {
				v = 1e6 - 3*v
			}
			samples = append(samples, sample{at: time.UnixMilli(ms), value: v})
		}
		other.db = append(other.db, storage.NewListSeries(s.Labels(), samples))
	}
	v, err := other.ask(t.Context(), expr)
	if err != nil {
		return []string{err.Error()}
	}
	return values(v)
}

func values(v promql.Vector) []string {
	var out []string
	for _, s := range v {
		out = append(out, fmt.Sprintf("%s %.9g", s.Metric, s.F))
	}
	slices.Sort(out)
	return out
}

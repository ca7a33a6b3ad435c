package spec_test

import (
	"testing"
	"time"

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

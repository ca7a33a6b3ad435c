package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// newestSample is PromQL for the time of the newest sample under any of the
// selectors.
func newestSample(selectors []string) string {
	return combine("max", selectors, func(sel string) string {
		return "max(timestamp(" + sel + "))"
	})
}

// oldestSample is PromQL for the time of the oldest sample within the window
// that ends at now, to a sixtieth of it. The instant is pinned, because it is
// asked together with a query at another one.
func oldestSample(selectors []string, window time.Duration, now time.Time) string {
	step := max(window/60, time.Second).Truncate(time.Millisecond)
	at := strconv.FormatFloat(float64(now.UnixMilli())/1000, 'f', 3, 64)
	return combine("min", selectors, func(sel string) string {
		return fmt.Sprintf("min(min_over_time(timestamp(%s)[%s:%s] @ %s))",
			sel, spec.FormatDuration(window), spec.FormatDuration(step), at)
	})
}

// combine aggregates one value per selector. "or" drops every element of its
// right side whose labels stand on its left side, and an aggregate has none, so
// without a label of its own each but the first would be lost.
func combine(agg string, selectors []string, each func(string) string) string {
	var distinct []string
	for _, s := range selectors {
		if !slices.Contains(distinct, s) {
			distinct = append(distinct, s)
		}
	}
	if len(distinct) == 1 {
		return each(distinct[0])
	}
	parts := make([]string, len(distinct))
	for i, s := range distinct {
		parts[i] = fmt.Sprintf(`label_replace(%s, "selector", "%d", "", "")`, each(s), i)
	}
	return agg + "(" + strings.Join(parts, " or ") + ")"
}

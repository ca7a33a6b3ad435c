package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// newestSample is PromQL for the time of the newest sample under any of the
// selectors, for each group where there are groups.
func newestSample(selectors, by []string) string {
	return combine("max", selectors, by, func(sel string) string {
		return aggregate("max", by) + "(timestamp(" + sel + "))"
	})
}

// oldestSample is PromQL for the time of the oldest sample within a window, to
// a sixtieth of it. Where no step of a sixtieth holds data, as just after a
// start, the last sixtieth is looked at in steps of its own.
func oldestSample(selectors []string, window time.Duration) string {
	step := max(window/60, time.Second).Truncate(time.Millisecond)
	small := max(step/60, time.Second).Truncate(time.Millisecond)
	return combine("min", selectors, nil, func(sel string) string {
		return fmt.Sprintf("min(min_over_time(timestamp(%[1]s)[%[2]s:%[3]s]) or min_over_time(timestamp(%[1]s)[%[3]s:%[4]s]))",
			sel, spec.FormatDuration(window), spec.FormatDuration(step), spec.FormatDuration(small))
	})
}

func aggregate(op string, by []string) string {
	if len(by) == 0 {
		return op
	}
	names := make([]string, len(by))
	for i, label := range by {
		names[i] = labelName(label)
	}
	return op + " by (" + strings.Join(names, ", ") + ") "
}

// labelName writes a label as PromQL has it.
func labelName(label string) string {
	if model.LegacyValidation.IsValidLabelName(label) && !slices.Contains(notInLists, strings.ToLower(label)) {
		return label
	}
	return strconv.Quote(label)
}

// combine aggregates one value per selector. "or" drops every element of its
// right side whose labels stand on its left side, and an aggregate has none of
// its own, so without a label for each all but the first would be lost.
func combine(op string, selectors, by []string, each func(string) string) string {
	var distinct []string
	for _, s := range selectors {
		if !slices.Contains(distinct, s) {
			distinct = append(distinct, s)
		}
	}
	if len(distinct) == 1 {
		return each(distinct[0])
	}
	mark := "selector"
	for slices.Contains(by, mark) { // It must not take the place of what the groups are told apart by.
		mark += "_"
	}
	parts := make([]string, len(distinct))
	for i, s := range distinct {
		parts[i] = fmt.Sprintf(`label_replace(%s, "%s", "%d", "", "")`, each(s), mark, i)
	}
	return aggregate(op, by) + "(" + strings.Join(parts, " or ") + ")"
}

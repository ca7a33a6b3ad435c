package measure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// MaxBreakdownRows bounds the rows of one breakdown: what is beyond the largest
// fifty tells a proposer no more, and a label that nobody bounded must not fill
// the memory.
const MaxBreakdownRows = 50

// Breakdown is the answer to one evidence query: a number for each combination
// of its labels. It is shown to a proposer and decides nothing. How old its
// samples are is not known: an instant query stamps its own time on them, and
// the source itself looks back a few minutes at most.
type Breakdown struct {
	// Name is that of the evidence in the document.
	Name   string
	Labels []string
	// Rows are the largest numbers first, equal ones by their values.
	Rows []BreakdownRow
	// Omitted counts the rows that were left out for size.
	Omitted int
	// Dropped counts the series whose number is none: NaN, an infinity or a
	// subnormal one, as where a share of nothing is taken.
	Dropped int
	// Reason says why there is no answer; empty when there is one, which may
	// have no rows.
	Reason Reason
}

// BreakdownRow is one series: the values of the labels, in their order, and its
// number, which is finite.
type BreakdownRow struct {
	Values []string
	Number float64
}

// BreakdownOf makes the rows of a reading, whatever the order of its series. A
// source that warned, or whose answer is partial, gives none; neither do
// histograms, or series that differ only in labels that are not listed: to add
// them up would show a number that nobody measured. A reading of nothing is an
// answer without rows.
func BreakdownOf(name string, labels []string, r Reading) Breakdown {
	b := Breakdown{Name: name, Labels: slices.Clone(labels), Reason: r.Reason}
	if b.Reason != "" {
		return b
	}
	rows := make([]BreakdownRow, 0, len(r.Series))
	seen := make(map[string]bool, len(r.Series))
	several, histogram := false, false
	for _, s := range r.Series {
		row := BreakdownRow{Values: make([]string, len(labels))}
		for i, label := range labels {
			row.Values[i] = string(s.Metric[model.LabelName(label)])
		}
		key := strings.Join(row.Values, "\xff") // A label value is UTF-8 and has no such byte.
		v := number(s)
		several, histogram = several || seen[key], histogram || s.Histogram
		seen[key] = true
		if v.known() {
			row.Number = v.number + 0 // Minus zero is zero.
			rows = append(rows, row)
		} else {
			b.Dropped++
		}
	}
	switch {
	case several:
		return b.without(SeveralSeries)
	case histogram:
		return b.without(NotAVector)
	case len(rows) == 0 && b.Dropped > 0:
		return b.without(NotFinite)
	}
	return b.with(rows)
}

func (b Breakdown) without(reason Reason) Breakdown {
	return Breakdown{Name: b.Name, Labels: b.Labels, Reason: reason}
}

// with keeps the largest rows.
func (b Breakdown) with(rows []BreakdownRow) Breakdown {
	slices.SortFunc(rows, func(x, y BreakdownRow) int {
		return cmp.Or(cmp.Compare(y.Number, x.Number), slices.Compare(x.Values, y.Values))
	})
	kept := min(len(rows), MaxBreakdownRows)
	b.Rows, b.Omitted = slices.Clone(rows[:kept]), len(rows)-kept
	return b
}

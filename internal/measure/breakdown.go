package measure

// Breakdown is the answer to one evidence query: a number for each combination
// of its labels. It is shown to a proposer and decides nothing.
type Breakdown struct {
	// Name is that of the evidence in the document.
	Name   string
	Labels []string
	// Rows are the largest numbers first, equal ones by their values.
	Rows []BreakdownRow
	// Omitted counts the rows that were left out for size.
	Omitted int
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

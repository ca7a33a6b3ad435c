package measure

import "time"

// Every is how often the query is asked while its value is known: each sweep,
// at a cadence for longer windows, and zero where it is asked only when
// something else calls for it, such as the hour before where traffic is low.
func (q Query) Every(sweep time.Duration) time.Duration {
	if q.slot < 0 || q.o == nil {
		return 0
	}
	s, judge := q.o.slots[q.slot], q.o.o.JudgeWindow
	switch {
	case s.totalOnly && s.covers == 0 && len(q.o.o.GroupBy) == 0:
		return 0
	case s.window == judge && s.before == 0 && !s.totalOnly:
		return sweep
	}
	return s.cadence(&Measurement{}, sweep)
}

// Covers is the long window of which the query shows whether data covers it;
// zero for a query that measures.
func (q Query) Covers() time.Duration {
	if q.slot < 0 || q.o == nil {
		return 0
	}
	return q.o.slots[q.slot].covers
}

// Counted reports whether recorded counts may answer the query in place of raw
// samples: then they are asked first.
func (q Query) Counted() bool {
	return q.o != nil && q.o.counted != nil && !q.ID.TotalOnly && q.ID.Window >= countedFrom
}

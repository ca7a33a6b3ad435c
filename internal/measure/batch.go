package measure

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Request is one expression to send, which answers one or many asks.
type Request struct {
	// Expr is PromQL, At its instant.
	Expr string
	At   time.Time
	// Window is the longest range in it, for order and limits.
	Window time.Duration
	// Shape names what its members have in common, for whoever remembers how
	// large a group a source can bear.
	Shape string
	// Members is how many objectives' expressions it answers.
	Members int
	// Single says why its one expression cannot be asked together with others.
	Single string

	grouped Grouped
	asks    []int
}

// Batch turns queries of one source into requests and their answers into
// measurements. It is not safe for concurrent use.
type Batch struct {
	queries []Query
	out     []Measurement
	open    []int // the queries without a measurement
	// first is the first ask of an expression; the others are chained.
	first   map[*Expr]int
	asks    []asked
	pending []int // asks that were not handed out yet
}

// ask is one expression over one window at one instant.
type ask struct {
	expr   *Expr
	window time.Duration
	at     int64
}

// asked is an ask with its answer.
type asked struct {
	ask
	// next is the next ask of the same expression; 0 after the last.
	next     int
	answered bool
	reading  Reading
}

// perQuery is how many expressions a query needs that no other does: of most its
// total, its part, and one of what is asked beside them.
const perQuery = 3

// NewBatch starts a batch.
func NewBatch(qs []Query) *Batch {
	b := &Batch{
		queries: qs, out: make([]Measurement, len(qs)), open: make([]int, len(qs)),
		first: make(map[*Expr]int, perQuery*len(qs)/2), asks: make([]asked, 0, perQuery*len(qs)),
		pending: make([]int, 0, perQuery*len(qs)),
	}
	for i := range qs {
		b.open[i] = i
	}
	return b
}

// Requests returns what must be sent next, short windows first, in groups of at
// most chunk(shape, window) members; none when every query has its measurement.
// Each must be answered by Put before the next call.
func (b *Batch) Requests(chunk func(shape string, window time.Duration) int) []Request {
	a := answerer{get: b.reading}
	b.open = slices.DeleteFunc(b.open, func(i int) bool {
		m, whole := a.answer(&b.queries[i])
		if whole {
			b.out[i] = m
		}
		return whole
	})
	rs := b.group(b.pending, chunk)
	b.pending = nil
	return rs
}

// reading gives the answer of an ask, or notes that it is wanted.
func (b *Batch) reading(e *Expr, window time.Duration, at time.Time) (Reading, bool) {
	key := ask{e, window, at.UnixMilli()}
	i, known := b.first[e]
	for known && b.asks[i].ask != key && b.asks[i].next != 0 {
		i = b.asks[i].next
	}
	if known && b.asks[i].ask == key {
		return b.asks[i].reading, b.asks[i].answered
	}
	wanted := len(b.asks)
	if known {
		b.asks[i].next = wanted
	} else {
		b.first[e] = wanted
	}
	b.asks = append(b.asks, asked{ask: key})
	b.pending = append(b.pending, wanted)
	return Reading{}, false
}

// Measurements answers the queries one for one and in order. What was cut off
// before its answer came is not measured, and no zero.
func (b *Batch) Measurements() []Measurement {
	for _, i := range b.open {
		q := b.queries[i]
		m := Measurement{ID: q.ID, Source: q.Source, AsOf: q.ID.At}
		b.out[i] = unknown(m, "", unknownValue(NotMeasured, "the pass ended before the answer came"))
	}
	return b.out
}

type groupKey struct {
	shape  *Shape
	window time.Duration
	at     int64
}

func (b *Batch) group(asks []int, chunk func(string, time.Duration) int) []Request {
	groups := map[groupKey][]int{}
	var rs []Request
	for _, i := range asks {
		a := b.asks[i]
		if a.expr.shape == nil {
			rs = append(rs, b.single(i))
			continue
		}
		key := groupKey{a.expr.shape, a.window, a.at}
		groups[key] = append(groups[key], i)
	}
	for key, members := range groups {
		slices.SortFunc(members, func(x, y int) int {
			return slices.Compare(b.asks[x].expr.values, b.asks[y].expr.values)
		})
		size := max(1, chunk(key.shape.Key(), key.window))
		for part := range slices.Chunk(members, size) {
			rs = append(rs, b.together(part)...)
		}
	}
	slices.SortFunc(rs, func(x, y Request) int {
		return cmp.Or(cmp.Compare(x.Window, y.Window), x.At.Compare(y.At)*-1, strings.Compare(x.Expr, y.Expr))
	})
	return rs
}

func (b *Batch) single(i int) Request {
	a := b.asks[i]
	r := Request{
		Expr: a.expr.At(a.window), At: time.UnixMilli(a.at).UTC(), Window: a.window, Members: 1, asks: []int{i},
		Single: a.expr.Single,
	}
	if a.expr.shape != nil {
		r.Shape = a.expr.shape.Key()
	}
	return r
}

// together makes one request of several asks of one shape; what cannot be
// rendered together is asked one by one.
func (b *Batch) together(asks []int) []Request {
	if len(asks) > 1 {
		values := make([][]string, len(asks))
		for i, a := range asks {
			values[i] = b.asks[a].expr.values
		}
		r := b.single(asks[0])
		if g, err := Group(r.Expr, values); err == nil {
			r.Expr, r.grouped, r.Members, r.asks = g.Expr, g, len(asks), asks
			return []Request{r}
		}
	}
	out := make([]Request, len(asks))
	for i, a := range asks {
		out[i] = b.single(a)
	}
	return out
}

// Halve splits a request that failed as a whole, so that one member cannot take
// the others along; none when it has one member.
func (b *Batch) Halve(r Request) []Request {
	if len(r.asks) < 2 {
		return nil
	}
	half := len(r.asks) / 2
	return append(b.together(r.asks[:half]), b.together(r.asks[half:])...)
}

// One is the request of one member alone, of those that a request asks together:
// its answer tells a source that fails from a group that cannot be answered. The
// draw, 0 to 1, says which.
func (b *Batch) One(r Request, draw float64) Request {
	return b.single(r.asks[min(int(draw*float64(len(r.asks))), len(r.asks)-1)])
}

// Put records the answer of a request. A reading with a reason holds for all
// its members.
func (b *Batch) Put(r Request, answer Reading) {
	parts := [][]Sample{answer.Series}
	if len(r.asks) > 1 && answer.Reason == "" {
		parts = r.grouped.Split(answer.Series)
	}
	for i, a := range r.asks {
		b.asks[a].answered = true
		b.asks[a].reading = Reading{Reason: answer.Reason, Detail: answer.Detail}
		if answer.Reason == "" {
			b.asks[a].reading.Series = parts[i]
		}
	}
}

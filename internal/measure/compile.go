package measure

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Expr is PromQL with its window left open, parsed once for all passes. Equal
// ones are one pointer within Plans.
type Expr struct {
	render func(window time.Duration) string
	shape  *Shape
	values []string
	// Single says why it cannot be asked together with others; "" when it can.
	Single string
}

// member identifies the expression among all that have a shape. No value holds
// the byte that separates them.
func (e *Expr) member() string { return e.shape.Key() + "\xff" + strings.Join(e.values, "\xff") }

// At returns the PromQL for one window.
func (e *Expr) At(window time.Duration) string { return e.render(window) }

// probe is a window that nobody uses, with which expressions are analysed.
const probe = 7919 * time.Second

// Plans are the compiled queries of all services. They are immutable.
type Plans struct {
	exprs map[string]*Expr
	// members finds an expression by its shape and values: two that are only
	// written differently are one question.
	members  map[string]*Expr
	shapes   map[string]*Shape
	services map[string]*Plan
}

// Plan is the compiled queries of one service.
type Plan struct {
	service string
	digest  string
	// objectives holds one element for each objective and vantage point.
	objectives []*objective
}

// Compile prepares the queries of services. What did not change since before
// (nil at first) is taken over as it is.
func Compile(services []spec.Service, before *Plans) *Plans {
	p := &Plans{
		exprs: map[string]*Expr{}, members: map[string]*Expr{}, shapes: map[string]*Shape{},
		services: make(map[string]*Plan, len(services)),
	}
	for _, svc := range services {
		if old := before.Service(svc.Name); old != nil && old.digest != "" && old.digest == svc.Digest {
			p.adopt(old)
		}
	}
	for _, svc := range services {
		if p.services[svc.Name] == nil {
			p.services[svc.Name] = p.compile(svc)
		}
	}
	p.spread()
	// Only compiling needs to find expressions.
	p.exprs, p.members, p.shapes = nil, nil, nil
	return p
}

// Service returns the plan of one service; nil when there is none.
func (p *Plans) Service(name string) *Plan {
	if p == nil {
		return nil
	}
	return p.services[name]
}

func (p *Plans) adopt(old *Plan) {
	// Copied, because the phases of the old ones are being read.
	kept := &Plan{service: old.service, digest: old.digest}
	p.services[old.service] = kept
	for _, o := range old.objectives {
		mine := *o
		kept.objectives = append(kept.objectives, &mine)
		for _, e := range o.exprs() {
			p.exprs[e.At(probe)] = e
			if e.shape != nil {
				p.shapes[e.shape.Key()] = e.shape
				p.members[e.member()] = e
			}
		}
	}
}

func (p *Plans) compile(svc spec.Service) *Plan {
	out := &Plan{service: svc.Name, digest: svc.Digest}
	for _, o := range svc.Objectives {
		for i, in := range o.Vantages() {
			out.objectives = append(out.objectives, p.objective(svc, o, i, in))
		}
	}
	return out
}

// expr interns an expression.
func (p *Plans) expr(render func(time.Duration) string) *Expr {
	text := render(probe)
	if e, ok := p.exprs[text]; ok {
		return e
	}
	shape, values, single := Analyse(text)
	e := &Expr{render: render, values: values, Single: single}
	if shape != nil && single == "" {
		if known, ok := p.shapes[shape.Key()]; ok {
			shape = known
		}
		p.shapes[shape.Key()] = shape
		e.shape = shape
		if same, ok := p.members[e.member()]; ok {
			e = same
		}
		p.members[e.member()] = e
	}
	p.exprs[text] = e
	return e
}

func (p *Plans) query(q *spec.Query) *Expr {
	if q == nil {
		return nil
	}
	return p.expr(q.At)
}

// objective is one objective seen from one vantage point, compiled.
type objective struct {
	service string
	digest  string
	o       spec.Objective
	in      spec.Indicator
	vantage int
	source  string
	refused string

	good, bad, total, raw *Expr
	// newest is the time of the newest sample, oldest that of the oldest within
	// a window, resets the most resets of one counter within a window.
	newest, oldest, resets *Expr
	// low and high are the extremes of a recorded ratio.
	low, high *Expr
	// counted are the series that generated rules record; nil for raw ones.
	counted *counted
	// rate: the counts are per second.
	rate  bool
	slots []slot
	// phase spreads the refreshing of long windows, equal for all that are asked
	// together.
	phase uint64
}

func (o *objective) exprs() []*Expr {
	all := []*Expr{o.good, o.bad, o.total, o.raw, o.newest, o.oldest, o.resets, o.low, o.high}
	if o.counted != nil {
		all = append(all, o.counted.part, o.counted.total, o.counted.parts, o.counted.totals)
	}
	return slices.DeleteFunc(all, func(e *Expr) bool { return e == nil })
}

func (p *Plans) objective(svc spec.Service, so spec.Objective, vantage int, in spec.Indicator) *objective {
	o := &objective{service: svc.Name, digest: svc.Digest, o: so, in: in, vantage: vantage, slots: slotsOf(so, in)}
	base := cmp.Or(in.Total, in.Raw)
	if base == nil {
		o.refused = "the indicator has neither a total nor a raw query"
		return o
	}
	o.source = base.Source
	for _, q := range in.Queries() {
		if q.Source != base.Source {
			o.refused = "the queries of one indicator name different sources"
			return o
		}
	}
	selectors, err := base.Selectors()
	switch {
	case err != nil:
		o.refused = "the total query cannot be parsed: " + err.Error()
		return o
	case len(selectors) == 0:
		o.refused = "the total query has no selector, so nothing can tell the age of its samples"
		return o
	}
	o.rate = base.PerSecond()
	o.good, o.bad, o.total, o.raw = p.query(in.Good), p.query(in.Bad), p.query(in.Total), p.query(in.Raw)
	p.beside(o, *base, selectors)
	return o
}

// beside adds the expressions that are asked beside the counts.
func (p *Plans) beside(o *objective, base spec.Query, selectors []string) {
	by := o.o.GroupBy
	if base.Recorded {
		judge := o.o.JudgeWindow
		o.newest = p.expr(func(time.Duration) string { return "max(timestamp(" + base.At(judge) + "))" })
		o.oldest = p.expr(func(w time.Duration) string {
			return oldestSample([]string{base.At(judge)}, w)
		})
		o.low = p.expr(func(w time.Duration) string { return "min(min_over_time(" + base.At(w) + "[3m]))" })
		o.high = p.expr(func(w time.Duration) string { return "max(max_over_time(" + base.At(w) + "[3m]))" })
		return
	}
	o.newest = p.expr(func(time.Duration) string { return newestSample(selectors, by) })
	o.oldest = p.expr(func(w time.Duration) string { return oldestSample(selectors, w) })
	if counters := base.Counters(); len(counters) > 0 {
		o.resets = p.expr(func(w time.Duration) string { return mostResets(counters, by, w) })
	}
	if slices.ContainsFunc(o.o.Windows(), func(w time.Duration) bool { return w >= countedFrom }) {
		o.counted = p.counts(o)
	}
}

// spread gives objectives that are asked together one phase, so that a group's
// windows are due in one pass and different groups in different ones.
func (p *Plans) spread() {
	byShape := map[string][]*objective{}
	for _, plan := range p.services {
		for _, o := range plan.objectives {
			if e := cmp.Or(o.total, o.raw); e != nil {
				key := e.At(probe)
				if e.shape != nil {
					key = e.shape.Key()
				}
				byShape[o.source+" "+key] = append(byShape[o.source+" "+key], o)
			}
		}
	}
	for key, os := range byShape {
		slices.SortFunc(os, func(a, b *objective) int {
			return cmp.Or(slices.Compare(cmp.Or(a.total, a.raw).values, cmp.Or(b.total, b.raw).values),
				strings.Compare(a.service, b.service), strings.Compare(a.o.ID, b.o.ID), cmp.Compare(a.vantage, b.vantage))
		})
		h := fnv.New64a()
		_, _ = h.Write([]byte(key)) // a hash takes everything
		for i, o := range os {
			o.phase = h.Sum64() + uint64(i/groupSize)*0x9e3779b97f4a7c15
		}
	}
}

// groupSize is how many objectives share a phase: the default of how many
// services share a query.
const groupSize = 100

// mostResets is PromQL for the most resets of one counter within a window, for
// each group where there are groups.
func mostResets(counters, by []string, window time.Duration) string {
	w := spec.FormatDuration(window)
	return combine("max", counters, by, func(sel string) string {
		return aggregate("max", by) + "(resets(" + strings.TrimSpace(sel) + "[" + w + "]))"
	})
}

package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// part is one query of an indicator with its key.
type part struct {
	name  string
	query Query
}

// parts are the queries that are set, the one that the others are measured
// against first: total or raw.
func (i Indicator) parts() []part {
	var out []part
	for _, p := range []struct {
		name  string
		query *Query
	}{{"total", i.Total}, {"raw", i.Raw}, {"good", i.Good}, {"bad", i.Bad}} {
		if p.query != nil {
			out = append(out, part{p.name, *p.query})
		}
	}
	return out
}

// proof is what one query proves about its value.
type proof struct {
	part

	labels outer
	unit   unit
}

// prove skips a query that does not parse, which is a fault already.
func (p part) prove() (proof, bool) {
	if p.query.Counter {
		return proof{p, noLabels, events}, true
	}
	expr, err := parse(p.query.At(probeWindow))
	if err != nil || expr.Type() != parser.ValueTypeVector {
		return proof{}, false
	}
	return proof{p, labelsOf(expr), unitOf(expr)}, true
}

// checkVantages finds by which labels the objective is grouped, and holds all
// of its queries against it: a value that is matched with another group's, or
// is off by the window, would be wrong without anybody seeing it.
func (j judged) checkVantages() {
	documented := len(j.o.GroupBy) > 0 // Its reader knows the labels, even where nothing proves them.
	for i, in := range j.o.Vantages() {
		var base *proof
		for _, p := range in.parts() {
			got, ok := p.prove()
			if !ok {
				continue
			}
			if base == nil {
				base = &got
				if i == 0 && len(j.o.GroupBy) == 0 {
					j.o.GroupBy = got.labels.names
				}
			}
			j.checkGrouping(i, got, like{base.name, documented})
			j.checkUnit(i, got, *base)
		}
	}
}

// owns reports whether a vantage point has queries of its own.
func (j judged) owns(i int) bool { return i < len(j.by.Sources) && j.by.Sources[i].hasOwn }

// agree reports whether the labels can be those wanted. Where nothing is wanted,
// or the document vouches for them, they need no proof.
func (o outer) agree(want []string, vouched bool) bool {
	switch {
	case o.without != nil:
		return false
	case o.known:
		return slices.Equal(o.names, want)
	}
	return vouched || len(want) == 0
}

// like is what a query must be grouped like: another query of its indicator,
// or the document, which may know more than a query proves.
type like struct {
	base       string
	documented bool
}

func (k like) name(i int) string {
	switch {
	case i > 0:
		return "the first vantage point"
	case k.documented:
		return "the SLO"
	}
	return k.base
}

func (j judged) checkGrouping(i int, p proof, k like) {
	want, name := j.o.GroupBy, k.name(i)
	if p.labels.agree(want, k.documented && !j.owns(i)) {
		return
	}
	by, mine := strings.Join(want, ", "), strings.Join(p.labels.names, ", ")
	switch {
	case p.labels.without != nil:
		j.faultIn(i, p.part, "is grouped without (%s), so nobody can know which labels are left: "+
			"write by (…) with the labels that tell its series apart", strings.Join(p.labels.without.Grouping, ", "))
	case len(want) == 0:
		j.faultIn(i, p.part, "is grouped by (%s), and %s is not: group all queries of an objective alike", mine, name)
	case p.query.Counter:
		j.faultIn(i, p.part, "is wrapped as one sum, and %s is grouped by (%s): write sum by (%s) (increase(…[{{.window}}])) instead", name, by, by)
	case !p.labels.known || mine == "":
		j.faultIn(i, p.part, "is not grouped by (%s), as %s is: aggregate it alike, e.g. sum by (%s) (…)", by, name, by)
	default:
		j.faultIn(i, p.part, "is grouped by (%s), and %s by (%s): group all queries of an objective alike", mine, name, by)
	}
}

func (j judged) checkUnit(i int, p, base proof) {
	words := map[unit]string{perSecond: "events per second (rate)", events: "events over the window (increase)"}
	mine, its := words[p.unit], words[base.unit]
	if mine != "" && its != "" && mine != its {
		j.faultIn(i, p.part, "counts %s, and %s %s, so their ratio would be off by the window: use the same in both", mine, base.name, its)
	}
}

// faultIn points at a query: in the Remediation where the vantage point has its
// own, otherwise where the SLO has it.
func (j judged) faultIn(i int, p part, format string, args ...any) {
	if j.owns(i) {
		j.add(j.doc.Fault(IndexPath(j.at("sources"), i)+"."+p.name, format, args...))
		return
	}
	at := p.query.Pos
	if at == (Position{}) {
		at = j.o.Pos
	}
	j.add(Fault{Pos: at, Text: fmt.Sprintf("SLO %q: %s "+format, slices.Concat([]any{j.o.SLO, p.name}, args)...)})
}

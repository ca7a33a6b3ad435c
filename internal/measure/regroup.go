package measure

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Grouped is one query that answers for several members.
type Grouped struct {
	// Expr is PromQL.
	Expr string

	members int
	// varying are the labels by which the answer is dealt out, and dropped
	// those of them that no single answer carries.
	varying, dropped []model.LabelName
	// member finds who a series belongs to by the values of the varying labels.
	member map[string]int32
}

// Group renders one query for several members of one shape. The expression is
// that of any one member, and members[i] are the values of Shape.Labels of
// member i; all members are distinct. Values that all members share stay as
// they are. An error that one member would get from the server fails the whole
// group, so its sender halves it then.
func Group(expr string, members [][]string) (Grouped, error) {
	tree, err := promQL.ParseExpr(expr)
	if err != nil {
		return Grouped{}, fmt.Errorf("cannot group an expression that is not valid PromQL: %w", err)
	}
	p := prove(tree)
	if p.reason != "" {
		return Grouped{}, fmt.Errorf("cannot group the expression: %s: ask it alone", p.reason)
	}
	if err := checkMembers(p, members); err != nil {
		return Grouped{}, err
	}
	g := Grouped{Expr: expr, members: len(members)}
	var many []*labels.Matcher
	var at []int // index of each varying label
	for i, name := range p.labels {
		if !vary(members, i) {
			continue
		}
		at = append(at, i)
		many = append(many, &labels.Matcher{Type: labels.MatchRegexp, Name: name, Value: alternation(members, i)})
		g.varying = append(g.varying, model.LabelName(name))
		if !p.kept[i] {
			g.dropped = append(g.dropped, model.LabelName(name))
		}
	}
	if err := g.enrol(members, at); err != nil {
		return Grouped{}, err
	}
	if len(at) > 0 {
		keepApart(tree, many)
		replaceMatchers(tree, many)
		g.Expr = tree.String()
	}
	return g, nil
}

// checkMembers makes sure that they are members of the expression's shape.
func checkMembers(p proof, members [][]string) error {
	if len(members) == 0 {
		return errors.New("cannot group no members")
	}
	own := false
	for i, m := range members {
		if len(m) != len(p.labels) {
			return fmt.Errorf("member %d has %d values, want one for each label of the shape, %d", i, len(m), len(p.labels))
		}
		for _, v := range m {
			if v == "" || !utf8.ValidString(v) {
				return fmt.Errorf("member %d has the value %q, which cannot be one of many", i, v)
			}
		}
		own = own || slices.Equal(m, p.values)
	}
	if !own {
		return errors.New("the expression is that of no member")
	}
	return nil
}

func vary(members [][]string, i int) bool {
	return slices.ContainsFunc(members, func(m []string) bool { return m[i] != members[0][i] })
}

// alternation matches exactly the members' values of a label: PromQL anchors
// it at both ends.
func alternation(members [][]string, i int) string {
	values := make([]string, len(members))
	for j, m := range members {
		values[j] = m[i]
	}
	slices.Sort(values)
	var out []byte
	for j, v := range slices.Compact(values) {
		if j > 0 {
			out = append(out, '|')
		}
		out = append(out, regexp.QuoteMeta(v)...)
	}
	return string(out)
}

// keepApart makes the steps in which series meet tell the varying labels apart.
func keepApart(tree parser.Expr, varying []*labels.Matcher) {
	varies := func(name string) bool {
		_, ok := slices.BinarySearchFunc(varying, name, compareName)
		return ok
	}
	with := func(names []string) []string {
		names = slices.DeleteFunc(names, varies)
		for _, m := range varying {
			names = append(names, m.Name)
		}
		return names
	}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			if n.Without {
				n.Grouping = slices.DeleteFunc(n.Grouping, varies)
			} else {
				n.Grouping = with(n.Grouping)
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil && n.VectorMatching.On {
				n.VectorMatching.MatchingLabels = with(n.VectorMatching.MatchingLabels)
			}
		}
		return nil
	})
}

// separator stands between the values of one member. It is in no value.
const separator = "\xff"

func (g *Grouped) enrol(members [][]string, at []int) error {
	g.member = make(map[string]int32, len(members))
	own := make([]string, len(at))
	for i, m := range members {
		for n, j := range at {
			own[n] = m[j]
		}
		key := strings.Join(own, separator)
		if _, twice := g.member[key]; twice {
			return fmt.Errorf("member %d is there twice", i)
		}
		g.member[key] = int32(i)
	}
	return nil
}

// Split deals the series of the grouped answer out: out[i] are member i's,
// with the labels that its single query returns. Series that belong to no
// member, which two varying labels may bring along, are dropped. The series
// given are left as they are.
func (g Grouped) Split(series []Sample) [][]Sample {
	out := make([][]Sample, g.members)
	owner := make([]int32, len(series))
	count := make([]int32, g.members)
	mine := 0
	var buf [256]byte
	for i := range series {
		owner[i] = g.owner(series[i].Metric, buf[:0])
		if owner[i] >= 0 {
			count[owner[i]]++
			mine++
		}
	}
	all := make([]Sample, mine)
	for i := range series {
		m := owner[i]
		if m < 0 {
			continue
		}
		if out[m] == nil {
			out[m], all = all[:0:count[m]], all[count[m]:]
		}
		s := series[i]
		s.Metric = g.strip(s.Metric)
		out[m] = append(out[m], s)
	}
	return out
}

// owner is the member that a series belongs to, or -1.
func (g *Grouped) owner(metric model.Metric, buf []byte) int32 {
	if len(g.varying) == 1 {
		if i, ok := g.member[string(metric[g.varying[0]])]; ok {
			return i
		}
		return -1
	}
	for n, name := range g.varying {
		if n > 0 {
			buf = append(buf, separator...)
		}
		buf = append(buf, metric[name]...)
	}
	if i, ok := g.member[string(buf)]; ok {
		return i
	}
	return -1
}

func (g *Grouped) strip(metric model.Metric) model.Metric {
	if len(g.dropped) == 0 {
		return metric
	}
	out := make(model.Metric, max(len(metric)-len(g.dropped), 0))
	if len(metric) == len(g.dropped) {
		return out
	}
	for name, v := range metric {
		if !slices.Contains(g.dropped, name) {
			out[name] = v
		}
	}
	return out
}

package regolint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// lintNever finds comparisons that never hold, because the value is never that
// word or never of that kind, and names that the input does not have where only
// following a value shows it: through a function, a list that rules make, every.
func lintNever(s *terms.Source, tests map[string]*ast.Module) rego.Findings {
	n := never{src: s, seen: map[string]bool{}}
	for _, r := range s.Rules {
		if len(r.Head.Args) == 0 { // a function is looked at where it is called
			n.rule(r, nil, nil)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(tests)) {
		n.replaced(tests[p])
	}
	return n.found
}

type never struct {
	src   *terms.Source
	found rego.Findings
	seen  map[string]bool
}

func (n *never) report(l *ast.Location, code, text string) {
	n.found = append(n.found, at(l, code, rego.SeverityLint, text))
}

// replaced looks at what tests put in place of the input.
func (n *never) replaced(m *ast.Module) {
	root := n.src.Root()
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		for _, w := range e.With {
			if ref, ok := w.Target.Value.(ast.Ref); ok && ref.HasPrefix(ast.InputRootRef) {
				n.name(w.Target, ref, root)
			}
		}
		return false
	})
}

func (n *never) rule(r *ast.Rule, args []terms.Binding, from *terms.Scope) {
	for ; r != nil; r = r.Else {
		in := n.src.Of(r, args, from)
		if !n.src.Step(in.Depth) {
			return
		}
		n.body(r.Body, in)
		if r.Head.Key != nil {
			n.term(r.Head.Key, in)
		}
		if r.Head.Value != nil {
			n.term(r.Head.Value, in)
		}
	}
}

func (n *never) body(b ast.Body, s *terms.Scope) {
	s = s.Knowing(s.LearnKinds(b))
	for _, e := range b {
		switch t := e.Terms.(type) {
		case *ast.Term:
			n.term(t, s)
		case *ast.Every:
			n.term(t.Domain, s)
			n.body(t.Body, s.Every(t))
		case []*ast.Term:
			if _, to, ok := s.Definition(e); ok {
				n.term(to, s)
				continue
			}
			n.call(e.Location, t, s)
		}
	}
}

func (n *never) term(t *ast.Term, s *terms.Scope) {
	switch v := t.Value.(type) {
	case ast.Ref:
		n.name(t, v, s)
	case ast.Call:
		n.call(t.Location, v, s)
	case *ast.ArrayComprehension:
		n.inner(v.Body, s, v.Term)
	case *ast.SetComprehension:
		n.inner(v.Body, s, v.Term)
	case *ast.ObjectComprehension:
		n.inner(v.Body, s, v.Key, v.Value)
	default:
		for _, e := range terms.Elements(t) {
			n.term(e, s)
		}
	}
}

func (n *never) inner(b ast.Body, s *terms.Scope, heads ...*ast.Term) {
	in := s.Within(b)
	n.body(b, in)
	for _, h := range heads {
		n.term(h, in)
	}
}

// name looks for the first step of a reference that the input does not have.
func (n *never) name(t *ast.Term, ref ast.Ref, s *terms.Scope) {
	for i := 2; i <= len(ref); i++ {
		p := s.Resolve(ast.NewTerm(ref[:i]))
		if p.Absent != "" {
			n.report(t.Location, rego.CodeInput, fmt.Sprintf("%s is not in the gate input%s", p.Path, p.Absent))
			return
		}
	}
	for _, step := range ref[1:] {
		n.term(step, s)
	}
}

func (n *never) call(l *ast.Location, c []*ast.Term, s *terms.Scope) {
	for _, arg := range c[1:] {
		n.term(arg, s)
	}
	op, ok := c[0].Value.(ast.Ref)
	if !ok {
		return
	}
	if rules, _ := n.src.Find(op); rules != nil {
		n.function(rules, c[1:], s)
		return
	}
	switch op.String() {
	case "eq", "equal", "neq":
		n.equal(l, c[1], c[2], s)
	case "internal.member_2", "internal.member_3":
		collection := c[len(c)-1]
		for _, e := range s.Literals(collection) {
			n.equal(l, c[len(c)-2], e, s)
		}
	case "lt", "lte", "gt", "gte":
		n.order(l, c[1], c[2], s)
	}
}

// function looks at a function with the arguments of one call.
func (n *never) function(rules []*ast.Rule, args []*ast.Term, s *terms.Scope) {
	bound := s.Bound(args)
	id := fmt.Sprintf("%p", rules[0])
	for _, b := range bound {
		p := s.Look(b.Term)
		id += fmt.Sprintf(" %s %v", p.Path, p.Shape)
	}
	if n.seen[id] {
		return
	}
	n.seen[id] = true
	for _, r := range rules {
		n.rule(r, bound, s)
	}
}

// equal looks at two values that are compared for equality.
func (n *never) equal(l *ast.Location, x, y *ast.Term, s *terms.Scope) {
	px, py := s.Look(x), s.Look(y)
	if px.Shape == nil || py.Shape == nil {
		return
	}
	if px.Meets(py.Shape) {
		return
	}
	if terms.IsScalar(x) {
		x, y, px, py = y, x, py, px
	}
	text := fmt.Sprintf("%s is never %s: it is %s", words(x, px), words(y, py), px.Shape)
	if w, ok := y.Value.(ast.String); ok {
		if best := rego.Nearest(string(w), px.Words, 2); best != "" {
			text += fmt.Sprintf("; did you mean %q?", best)
		}
	}
	n.report(l, CodeNever, text)
}

// order looks at two values that are compared by size.
func (n *never) order(l *ast.Location, x, y *ast.Term, s *terms.Scope) {
	px, py := s.Look(x), s.Look(y)
	if px.Shape == nil || py.Shape == nil || px.Compared()&py.Compared() != 0 {
		return
	}
	n.report(l, CodeNever, fmt.Sprintf("%s is %s and %s is %s: values of different kinds are ordered by their kind alone",
		words(x, px), px.Shape, words(y, py), py.Shape))
}

// words name a value: a literal by itself, others by their path.
func words(t *ast.Term, p terms.Place) string {
	if terms.IsScalar(t) || p.Path == "" {
		if t.Location != nil && len(t.Location.Text) > 0 {
			return string(t.Location.Text)
		}
		return t.String()
	}
	return p.Path
}

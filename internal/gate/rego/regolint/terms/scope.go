package terms

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// Binding is what a variable stands for: a term, or each element of one.
type Binding struct {
	Term *ast.Term
	// In is where the term stands.
	In *Scope
	// Each: the variable is each element of the term in turn.
	Each bool
}

// Scope is a body with what its variables stand for and what its conditions say
// of the values.
type Scope struct {
	// Known is what the conditions around a term say.
	Known Knowledge
	// Depth counts the rules that lead here.
	Depth int

	src   *Source
	outer *Scope
	vars  map[ast.Var]Binding
}

// Root is a scope in which nothing is bound.
func (s *Source) Root() *Scope {
	return &Scope{src: s, vars: map[ast.Var]Binding{}, Known: Knowledge{}}
}

// Within is the scope of a body inside of this one.
func (s *Scope) Within(b ast.Body) *Scope {
	in := &Scope{src: s.src, outer: s, vars: map[ast.Var]Binding{}, Known: s.Known, Depth: s.Depth}
	in.bind(b)
	return in
}

// Every is the scope of the body of every.
func (s *Scope) Every(e *ast.Every) *Scope {
	in := s.Within(nil)
	if v, ok := e.Value.Value.(ast.Var); ok {
		in.vars[v] = Binding{Term: e.Domain, In: s, Each: true}
	}
	in.bind(e.Body)
	return in
}

// Knowing is the scope where more is known.
func (s *Scope) Knowing(more Knowledge) *Scope {
	in := *s
	in.Known = in.Known.With(more)
	return &in
}

// Of is the scope of a rule's body, or of its function for these arguments.
func (s *Source) Of(r *ast.Rule, args []Binding, from *Scope) *Scope {
	in := &Scope{src: s, vars: map[ast.Var]Binding{}, Known: Knowledge{}}
	if from != nil {
		in.Depth, in.Known = from.Depth+1, from.Known.lasting()
	}
	for i, a := range r.Head.Args {
		if v, ok := a.Value.(ast.Var); ok && i < len(args) {
			in.vars[v] = args[i]
		} else if i < len(args) {
			in.parts(a, args[i])
		}
	}
	in.bind(r.Body)
	return in
}

// bind notes what variables are assigned in a body.
func (s *Scope) bind(b ast.Body) {
	for _, e := range b {
		if v, t, ok := s.Definition(e); ok {
			s.vars[v] = Binding{Term: t, In: s}
		} else if !e.Negated && e.IsEquality() {
			s.parts(e.Operand(0), Binding{Term: e.Operand(1), In: s})
			s.parts(e.Operand(1), Binding{Term: e.Operand(0), In: s})
		}
	}
}

// parts notes the variables of a pattern, such as {"remaining": n} = input.balance.
func (s *Scope) parts(pattern *ast.Term, of Binding) {
	if _, made := of.Term.Value.(ast.Call); made {
		return // what a function gives is there
	}
	part := func(key, p *ast.Term) {
		v, ok := p.Value.(ast.Var)
		if _, bound := s.Lookup(v); !ok || bound {
			return
		}
		from := ast.Ref{of.Term, key}
		if ref, ok := of.Term.Value.(ast.Ref); ok {
			from = ref.Append(key)
		}
		s.vars[v] = Binding{Term: ast.NewTerm(from), In: of.In}
	}
	switch p := pattern.Value.(type) {
	case ast.Object:
		p.Foreach(part)
	case *ast.Array:
		for i := range p.Len() {
			part(ast.IntNumberTerm(i), p.Elem(i))
		}
	}
}

// Definition is the variable that an expression gives its value.
func (s *Scope) Definition(e *ast.Expr) (ast.Var, *ast.Term, bool) {
	if e.Negated || !e.IsEquality() && !e.IsAssignment() {
		return "", nil, false
	}
	a, b := e.Operand(0), e.Operand(1)
	for _, side := range [][2]*ast.Term{{a, b}, {b, a}} {
		v, ok := side[0].Value.(ast.Var)
		if !ok {
			continue
		}
		have, bound := s.Lookup(v)
		if bound && have.Term != side[1] || s.leadsTo(side[1], v) {
			continue
		}
		return v, side[1], true
	}
	return "", nil, false
}

// leadsTo keeps x = y; y = x from going round.
func (s *Scope) leadsTo(t *ast.Term, v ast.Var) bool {
	for range maxDepth {
		next, ok := t.Value.(ast.Var)
		if !ok {
			return false
		}
		if next == v {
			return true
		}
		b, ok := s.Lookup(next)
		if !ok {
			return false
		}
		t = b.Term
	}
	return true
}

// Lookup is what a variable stands for here.
func (s *Scope) Lookup(v ast.Var) (Binding, bool) {
	for ; s != nil; s = s.outer {
		if b, ok := s.vars[v]; ok {
			return b, true
		}
	}
	return Binding{}, false
}

// Bound are arguments as a function's parameters see them.
func (s *Scope) Bound(args []*ast.Term) []Binding {
	out := make([]Binding, len(args))
	for i, a := range args {
		out[i] = Binding{Term: a, In: s}
	}
	return out
}

// elementsOf are what a list, set or object in the source holds.
func (s *Scope) elementsOf(t *ast.Term) (out []Binding) {
	for _, e := range Elements(t) {
		out = append(out, Binding{Term: e, In: s})
	}
	return out
}

// Literal is the scalar that a term stands for, or the term.
func (s *Scope) Literal(t *ast.Term) *ast.Term {
	for at, in := t, s; s.src.Step(in.Depth); {
		switch v := at.Value.(type) {
		case ast.Var:
			b, ok := in.Lookup(v)
			if !ok || b.Each {
				return t
			}
			at, in = b.Term, b.In
			continue
		case ast.Ref:
			rules, name := s.src.Find(v)
			if len(rules) != 1 || len(name) < len(v) || rules[0].Else != nil || IsSet(rules[0]) {
				return t
			}
			at, in = rules[0].Head.Value, s.src.Of(rules[0], nil, in)
			continue
		}
		if IsScalar(at) {
			return at
		}
		return t
	}
	return t
}

package regolint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// binding is what a variable stands for: a term, or each element of one.
type binding struct {
	term *ast.Term
	in   *scope
	each bool
}

// scope is a body with what its variables stand for and what its conditions say
// of the values.
type scope struct {
	src   *source
	outer *scope
	vars  map[ast.Var]binding
	known knowledge
	depth int
}

// place is a value that a term stands for.
type place struct {
	*shape
	// path names it for people, key in comparisons: the same key is the same
	// value in one evaluation.
	path, key string
	// present: it is there whatever the input holds.
	present bool
	// elements make up what rules and comprehensions collect.
	elements []binding
	// absent ends a finding about a name that the schema does not have.
	absent string
}

// within is the scope of a body inside of this one.
func (s *scope) within(b ast.Body) *scope {
	in := &scope{src: s.src, outer: s, vars: map[ast.Var]binding{}, known: s.known, depth: s.depth}
	in.bind(b)
	return in
}

// of is the scope of a rule's body, or of its function for these arguments.
func (s *source) of(r *ast.Rule, args []binding, from *scope) *scope {
	in := &scope{src: s, vars: map[ast.Var]binding{}, known: knowledge{}}
	if from != nil {
		in.depth, in.known = from.depth+1, from.known.lasting()
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
func (s *scope) bind(b ast.Body) {
	for _, e := range b {
		if v, t, ok := s.definition(e); ok {
			s.vars[v] = binding{term: t, in: s}
		} else if !e.Negated && e.IsEquality() {
			s.parts(e.Operand(0), binding{term: e.Operand(1), in: s})
			s.parts(e.Operand(1), binding{term: e.Operand(0), in: s})
		}
	}
}

// parts notes the variables of a pattern, such as {"remaining": n} = input.balance.
func (s *scope) parts(pattern *ast.Term, of binding) {
	if _, made := of.term.Value.(ast.Call); made {
		return // what a function gives is there
	}
	part := func(key, p *ast.Term) {
		v, ok := p.Value.(ast.Var)
		if _, bound := s.lookup(v); !ok || bound {
			return
		}
		from := ast.Ref{of.term, key}
		if ref, ok := of.term.Value.(ast.Ref); ok {
			from = ref.Append(key)
		}
		s.vars[v] = binding{term: ast.NewTerm(from), in: of.in}
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

// definition is the variable that an expression gives its value.
func (s *scope) definition(e *ast.Expr) (ast.Var, *ast.Term, bool) {
	if e.Negated || !e.IsEquality() && !e.IsAssignment() {
		return "", nil, false
	}
	a, b := e.Operand(0), e.Operand(1)
	for _, side := range [][2]*ast.Term{{a, b}, {b, a}} {
		v, ok := side[0].Value.(ast.Var)
		if !ok {
			continue
		}
		have, bound := s.lookup(v)
		if bound && have.term != side[1] || s.leadsTo(side[1], v) {
			continue
		}
		return v, side[1], true
	}
	return "", nil, false
}

// leadsTo keeps x = y; y = x from going round.
func (s *scope) leadsTo(t *ast.Term, v ast.Var) bool {
	for range maxDepth {
		next, ok := t.Value.(ast.Var)
		if !ok {
			return false
		}
		if next == v {
			return true
		}
		b, ok := s.lookup(next)
		if !ok {
			return false
		}
		t = b.term
	}
	return true
}

func (s *scope) lookup(v ast.Var) (binding, bool) {
	for ; s != nil; s = s.outer {
		if b, ok := s.vars[v]; ok {
			return b, true
		}
	}
	return binding{}, false
}

// bound are arguments as a function's parameters see them.
func (s *scope) bound(args []*ast.Term) []binding {
	out := make([]binding, len(args))
	for i, a := range args {
		out[i] = binding{term: a, in: s}
	}
	return out
}

// resolve gives the value that a term stands for.
func (s *scope) resolve(t *ast.Term) place {
	if !s.src.step(s.depth) {
		return place{}
	}
	switch v := t.Value.(type) {
	case ast.Var:
		b, ok := s.lookup(v)
		switch {
		case !ok:
			return place{key: string(v)}
		case b.each:
			return b.in.resolve(b.term).each(string(v))
		}
		return b.in.resolve(b.term)
	case ast.Ref:
		return s.resolveRef(v)
	case ast.Call:
		return s.resolveCall(v)
	case *ast.ArrayComprehension:
		return place{shape: ofLiteral(v), elements: []binding{{term: v.Term, in: s.within(v.Body)}}}
	case *ast.SetComprehension:
		return place{shape: ofLiteral(v), elements: []binding{{term: v.Term, in: s.within(v.Body)}}}
	case *ast.ObjectComprehension:
		return place{shape: ofLiteral(v), elements: []binding{{term: v.Value, in: s.within(v.Body)}}}
	}
	return place{shape: ofLiteral(t.Value), present: true, elements: s.elementsOf(t)}
}

// elementsOf are what a list, set or object in the source holds.
func (s *scope) elementsOf(t *ast.Term) (out []binding) {
	for _, e := range elements(t) {
		out = append(out, binding{term: e, in: s})
	}
	return out
}

// literal is the scalar that a term stands for, or the term.
func (s *scope) literal(t *ast.Term) *ast.Term {
	for at, in := t, s; s.src.step(in.depth); {
		switch v := at.Value.(type) {
		case ast.Var:
			b, ok := in.lookup(v)
			if !ok || b.each {
				return t
			}
			at, in = b.term, b.in
			continue
		case ast.Ref:
			rules, name := s.src.find(v)
			if len(rules) != 1 || len(name) < len(v) || rules[0].Else != nil || isSet(rules[0]) {
				return t
			}
			at, in = rules[0].Head.Value, s.src.of(rules[0], nil, in)
			continue
		}
		if isScalar(at) {
			return at
		}
		return t
	}
	return t
}

func (s *scope) resolveRef(r ast.Ref) place {
	var at place
	rest := r[1:]
	switch {
	case r.HasPrefix(ast.InputRootRef):
		at = place{shape: s.src.input, path: "input", key: "input", present: true}
	case r.HasPrefix(ast.DefaultRootRef):
		rules, name := s.src.find(r)
		if rules == nil {
			at = place{shape: s.src.data, path: "data", key: "data", present: true}
			break
		}
		at, rest = s.valueOf(rules, name), r[len(name):]
	default:
		at = s.resolve(r[0])
	}
	for _, step := range rest {
		at = s.step(at, step)
	}
	return at
}

func (s *scope) step(at place, by *ast.Term) place {
	switch v := by.Value.(type) {
	case ast.String:
		return at.named(string(v))
	case ast.Number:
		next := at.each(v.String())
		next.present = false // the list may be shorter
		return next
	case ast.Var:
		if b, ok := s.lookup(v); ok && !b.each {
			if name, ok := b.term.Value.(ast.String); ok {
				return at.named(string(name))
			}
		}
		return at.each(string(v))
	}
	next := at.each(by.String())
	next.present = false
	return next
}

// named is a field.
func (p place) named(name string) place {
	out := place{path: p.path + "." + name, key: p.key + "." + name}
	if p.shape == nil {
		return out
	}
	f, ok := p.fields[name]
	switch {
	case ok:
		out.shape, out.present = f.shape, p.present && f.required && p.kinds == kindObject
	case p.other != nil:
		out.shape = p.other
	case p.closed && p.kinds == kindObject:
		var names []string
		for n := range p.fields {
			names = append(names, n)
		}
		out.absent = rego.Suggest(name, names)
		if out.absent == "" {
			out.absent = "; it has no fields"
		}
	}
	return out
}

// each is any element.
func (p place) each(key string) place {
	out := place{path: p.path + "[_]", key: p.key + "[" + key + "]"}
	if len(p.elements) > 0 {
		var all []place
		for _, e := range p.elements {
			all = append(all, e.in.resolve(e.term))
		}
		made := oneOf(all)
		made.key = out.key
		return made
	}
	if p.shape == nil {
		return out
	}
	switch p.kinds {
	case kindArray:
		out.shape, out.present = p.items, p.present
	case kindObject:
		if out.shape = p.other; out.shape == nil {
			out.shape, out.present = p.anyField(), p.present
		}
	}
	return out
}

// anyField is the shape of any of the fields.
func (p place) anyField() *shape {
	var all []*shape
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		all = append(all, p.fields[name].shape)
	}
	return union(all)
}

// oneOf is one of several values.
func oneOf(all []place) place {
	var shapes []*shape
	out := place{present: len(all) > 0}
	for i, p := range all {
		shapes = append(shapes, p.shape)
		out.present = out.present && p.present
		out.elements = append(out.elements, p.elements...)
		if i == 0 {
			out.path = p.path
		}
	}
	out.shape = union(shapes)
	if len(all) == 1 {
		out.key = all[0].key
	}
	return out
}

// valueOf is what rules hold.
func (s *scope) valueOf(rules []*ast.Rule, name ast.Ref) place {
	if p, ok := s.src.values[name.String()]; ok {
		return p
	}
	s.src.values[name.String()] = place{} // while it is worked out
	p := s.made(rules, nil)
	s.src.values[name.String()] = p
	return p
}

// made is what rules, or functions for these arguments, give.
func (s *scope) made(rules []*ast.Rule, args []binding) place {
	var all []place
	var elements []binding
	for _, r := range rules {
		for ; r != nil; r = r.Else {
			in := s.src.of(r, args, s)
			switch {
			case r.Head.RuleKind() == ast.MultiValue:
				elements = append(elements, binding{term: r.Head.Key, in: in})
			case isSet(r):
				elements = append(elements, binding{term: r.Head.Value, in: in})
			default:
				all = append(all, in.resolve(r.Head.Value))
			}
		}
	}
	if elements != nil {
		return place{shape: &shape{kinds: kindSet}, elements: elements}
	}
	p := oneOf(all)
	p.present = false // its conditions may not hold
	return p
}

func (s *scope) resolveCall(c ast.Call) place {
	op, ok := c[0].Value.(ast.Ref)
	if !ok {
		return place{}
	}
	if rules, _ := s.src.find(op); rules != nil {
		return s.made(rules, s.bound(c[1:]))
	}
	if name := op.String(); name == "max" || name == "min" {
		return s.resolve(c[1]).each(name)
	}
	if b := ast.BuiltinMap[op.String()]; b != nil {
		return place{shape: ofType(b.Decl.Result()), path: fmt.Sprintf("%s(…)", op)}
	}
	return place{}
}

func ofType(t types.Type) *shape {
	switch t.(type) {
	case types.Number:
		return &shape{kinds: kindNumber}
	case types.Boolean:
		return &shape{kinds: kindBoolean}
	case types.String:
		return &shape{kinds: kindText, free: true}
	}
	return nil
}

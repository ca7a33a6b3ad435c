package terms

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Place is a value that a term stands for.
type Place struct {
	*Shape
	// Path names it for people, "" where it has no name.
	Path string
	// Present: it is there whatever the input holds.
	Present bool
	// Absent ends a finding about a name that the schema does not have.
	Absent string

	// key names it in comparisons: the same key is the same value in one
	// evaluation.
	key string
	// elements make up what rules and comprehensions collect.
	elements []Binding
}

// Resolve gives the value that a term stands for.
func (s *Scope) Resolve(t *ast.Term) Place {
	if !s.src.Step(s.Depth) {
		return Place{}
	}
	switch v := t.Value.(type) {
	case ast.Var:
		b, ok := s.Lookup(v)
		switch {
		case !ok:
			return Place{key: string(v)}
		case b.Each:
			return b.In.Resolve(b.Term).each(string(v))
		}
		return b.In.Resolve(b.Term)
	case ast.Ref:
		return s.resolveRef(v)
	case ast.Call:
		return s.resolveCall(v)
	case *ast.ArrayComprehension:
		return Place{Shape: ofLiteral(v), elements: []Binding{{Term: v.Term, In: s.Within(v.Body)}}}
	case *ast.SetComprehension:
		return Place{Shape: ofLiteral(v), elements: []Binding{{Term: v.Term, In: s.Within(v.Body)}}}
	case *ast.ObjectComprehension:
		return Place{Shape: ofLiteral(v), elements: []Binding{{Term: v.Value, In: s.Within(v.Body)}}}
	}
	return Place{Shape: ofLiteral(t.Value), Present: true, elements: s.elementsOf(t)}
}

func (s *Scope) resolveRef(r ast.Ref) Place {
	var at Place
	rest := r[1:]
	switch {
	case r.HasPrefix(ast.InputRootRef):
		at = Place{Shape: s.src.input, Path: "input", key: "input", Present: true}
	case r.HasPrefix(ast.DefaultRootRef):
		rules, name := s.src.Find(r)
		if rules == nil {
			at = Place{Shape: s.src.data, Path: "data", key: "data", Present: true}
			break
		}
		at, rest = s.valueOf(rules, name), r[len(name):]
	default:
		at = s.Resolve(r[0])
	}
	for _, step := range rest {
		at = s.step(at, step)
	}
	return at
}

// step is what is one step below a place.
func (s *Scope) step(at Place, by *ast.Term) Place {
	switch v := by.Value.(type) {
	case ast.String:
		return at.named(string(v))
	case ast.Number:
		next := at.each(v.String())
		next.Present = false // the list may be shorter
		return next
	case ast.Var:
		if b, ok := s.Lookup(v); ok && !b.Each {
			if name, ok := b.Term.Value.(ast.String); ok {
				return at.named(string(name))
			}
		}
		return at.each(string(v))
	}
	next := at.each(by.String())
	next.Present = false
	return next
}

// named is a field.
func (p Place) named(name string) Place {
	out := Place{Path: p.Path + "." + name, key: p.key + "." + name}
	if p.Shape == nil {
		return out
	}
	f, ok := p.fields[name]
	switch {
	case ok:
		out.Shape, out.Present = f.Shape, p.Present && f.required && p.Kinds == Object
	case p.other != nil:
		out.Shape = p.other
	case p.closed && p.Kinds == Object:
		var names []string
		for n := range p.fields {
			names = append(names, n)
		}
		out.Absent = rego.Suggest(name, names)
		if out.Absent == "" {
			out.Absent = "; it has no fields"
		}
	}
	return out
}

// each is any element.
func (p Place) each(key string) Place {
	out := Place{Path: p.Path + "[_]", key: p.key + "[" + key + "]"}
	if len(p.elements) > 0 {
		var all []Place
		for _, e := range p.elements {
			all = append(all, e.In.Resolve(e.Term))
		}
		made := oneOf(all)
		made.key = out.key
		return made
	}
	if p.Shape == nil {
		return out
	}
	switch p.Kinds {
	case Array:
		out.Shape, out.Present = p.items, p.Present
	case Object:
		if out.Shape = p.other; out.Shape == nil {
			out.Shape, out.Present = p.anyField(), p.Present
		}
	}
	return out
}

// anyField is the shape of any of the fields.
func (p Place) anyField() *Shape {
	var all []*Shape
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		all = append(all, p.fields[name].Shape)
	}
	return union(all)
}

// oneOf is one of several values.
func oneOf(all []Place) Place {
	var shapes []*Shape
	out := Place{Present: len(all) > 0}
	for i, p := range all {
		shapes = append(shapes, p.Shape)
		out.Present = out.Present && p.Present
		out.elements = append(out.elements, p.elements...)
		if i == 0 {
			out.Path = p.Path
		}
	}
	out.Shape = union(shapes)
	if len(all) == 1 {
		out.key = all[0].key
	}
	return out
}

// valueOf is what rules hold.
func (s *Scope) valueOf(rules []*ast.Rule, name ast.Ref) Place {
	if p, ok := s.src.values[name.String()]; ok {
		return p
	}
	s.src.values[name.String()] = Place{} // while it is worked out
	p := s.made(rules, nil)
	s.src.values[name.String()] = p
	return p
}

// made is what rules, or functions for these arguments, give.
func (s *Scope) made(rules []*ast.Rule, args []Binding) Place {
	var all []Place
	var elements []Binding
	for _, r := range rules {
		for ; r != nil; r = r.Else {
			in := s.src.Of(r, args, s)
			switch {
			case r.Head.RuleKind() == ast.MultiValue:
				elements = append(elements, Binding{Term: r.Head.Key, In: in})
			case IsSet(r):
				elements = append(elements, Binding{Term: r.Head.Value, In: in})
			default:
				all = append(all, in.Resolve(r.Head.Value))
			}
		}
	}
	if elements != nil {
		return Place{Shape: &Shape{Kinds: Set}, elements: elements}
	}
	p := oneOf(all)
	p.Present = false // its conditions may not hold
	return p
}

func (s *Scope) resolveCall(c ast.Call) Place {
	op, ok := c[0].Value.(ast.Ref)
	if !ok {
		return Place{}
	}
	if rules, _ := s.src.Find(op); rules != nil {
		return s.made(rules, s.Bound(c[1:]))
	}
	if name := op.String(); name == "max" || name == "min" {
		return s.Resolve(c[1]).each(name)
	}
	if b := ast.BuiltinMap[op.String()]; b != nil {
		return Place{Shape: ofType(b.Decl.Result()), Path: fmt.Sprintf("%s(…)", op)}
	}
	return Place{}
}

func ofType(t types.Type) *Shape {
	switch t.(type) {
	case types.Number:
		return &Shape{Kinds: Number}
	case types.Boolean:
		return &Shape{Kinds: Boolean}
	case types.String:
		return &Shape{Kinds: Text, free: true}
	}
	return nil
}

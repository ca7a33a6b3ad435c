package terms

import (
	"maps"
	"regexp"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// fact is what a condition that holds says of a value.
type fact struct {
	// kinds are those that it may have, 0 for any.
	kinds Kind
	// known: it is not the word for what is not known.
	known bool
}

// Knowledge is what the conditions around an expression say, by the key of the
// value.
type Knowledge map[string]fact

// With adds what other conditions say.
func (k Knowledge) With(more Knowledge) Knowledge {
	if len(more) == 0 {
		return k
	}
	out := maps.Clone(k)
	if out == nil {
		out = Knowledge{}
	}
	for key, f := range more {
		old := out[key]
		if old.kinds == 0 {
			old.kinds = f.kinds
		}
		out[key] = fact{old.kinds, old.known || f.known}
	}
	return out
}

// both is what either of two ways to hold says.
func (k Knowledge) both(other Knowledge) Knowledge {
	out := Knowledge{}
	for key, a := range k {
		b, ok := other[key]
		if !ok {
			continue
		}
		f := fact{a.kinds | b.kinds, a.known && b.known}
		if a.kinds == 0 || b.kinds == 0 {
			f.kinds = 0
		}
		out[key] = f
	}
	return out
}

// lastingKey is one that means the same in every body: without a variable that
// only its own body has.
var lastingKey = regexp.MustCompile(`^(input|data|__local\d+__)(\.[^.\[]+|\[(__local\d+__|\d+)\])*$`)

// lasting is what still holds in another rule.
func (k Knowledge) lasting() Knowledge {
	out := maps.Clone(k)
	maps.DeleteFunc(out, func(key string, _ fact) bool { return !lastingKey.MatchString(key) })
	return out
}

// Learn gives what a body's conditions say when all of them hold.
func (s *Scope) Learn(b ast.Body) Knowledge {
	out := Knowledge{}
	for _, e := range b {
		out = out.With(s.LearnFrom(e))
	}
	return out
}

// LearnFrom is what one condition says when it holds.
func (s *Scope) LearnFrom(e *ast.Expr) Knowledge {
	if e.Negated || len(e.With) > 0 {
		return nil
	}
	t, ok := e.Terms.(*ast.Term)
	if ok {
		if ref, ok := t.Value.(ast.Ref); ok {
			return s.learnFromRules(ref, nil)
		}
		if c, ok := t.Value.(ast.Call); ok {
			return s.learnFromCall(c[0].String(), c[1:])
		}
		return nil
	}
	if !e.IsCall() {
		return nil
	}
	if rules, _ := s.src.Find(e.Operator()); rules != nil {
		return s.learnFromRules(e.Operator(), s.Bound(e.Operands()))
	}
	return s.learnFromCall(e.Operator().String(), e.Operands())
}

var kindTests = map[string]Kind{
	"is_number": Number, "is_boolean": Boolean, "is_string": Text, "is_object": Object, "is_array": Array,
}

// LearnKinds is what a body's tests of a kind say, and nothing else: what it
// compares is what is looked at.
func (s *Scope) LearnKinds(b ast.Body) Knowledge {
	out := Knowledge{}
	for _, e := range b {
		if !e.Negated && e.IsCall() && kindTests[e.Operator().String()] != 0 {
			out = out.With(s.LearnFrom(e))
		}
	}
	return out
}

func (s *Scope) learnFromCall(op string, args []*ast.Term) Knowledge {
	if k, ok := kindTests[op]; ok && len(args) == 1 {
		return s.fact(args[0], fact{kinds: k, known: k != Text})
	}
	switch op {
	case "eq", "equal":
		return s.learnEqual(args[0], args[1]).With(s.learnEqual(args[1], args[0]))
	case "neq":
		for i := range args {
			if IsUnknown(s.Literal(args[i])) {
				return s.fact(args[1-i], fact{known: true})
			}
		}
	case "internal.member_2":
		elements := s.Literals(args[1])
		if elements != nil && !slices.ContainsFunc(elements, IsUnknown) {
			return s.fact(args[0], fact{kinds: kindsOf(elements), known: true})
		}
	}
	return nil
}

func (s *Scope) learnEqual(t, to *ast.Term) Knowledge {
	to = s.Literal(to)
	if c, ok := t.Value.(ast.Call); ok && c[0].String() == "type_name" && to.Value.Compare(ast.String("number")) == 0 {
		return s.fact(c[1], fact{kinds: Number, known: true})
	}
	if IsScalar(to) && !IsUnknown(to) {
		return s.fact(t, fact{kinds: kindsOf([]*ast.Term{to}), known: true})
	}
	return nil
}

func (s *Scope) fact(t *ast.Term, f fact) Knowledge {
	if key := s.Resolve(t).key; key != "" {
		return Knowledge{key: f}
	}
	return nil
}

// learnFromRules is what all ways to make a helper true have in common.
func (s *Scope) learnFromRules(ref ast.Ref, args []Binding) Knowledge {
	rules, name := s.src.Find(ref)
	if len(rules) == 0 || len(name) < len(ref) || IsSet(rules[0]) || !s.src.Step(s.Depth) {
		return nil
	}
	id := name.String() + ArgumentKeys(args)
	if k, ok := s.src.learnt[id]; ok {
		return k
	}
	k := s.inCommon(rules, args).lasting()
	s.src.learnt[id] = k
	return k
}

func (s *Scope) inCommon(rules []*ast.Rule, args []Binding) Knowledge {
	var out Knowledge
	for _, r := range rules {
		switch {
		case r.Default && IsFalse(r.Head.Value):
			continue
		case r.Default || r.Else != nil:
			return nil
		}
		learnt := s.src.Of(r, args, s).Learn(r.Body)
		if out != nil {
			learnt = out.both(learnt)
		}
		out = learnt
	}
	return out
}

// ArgumentKeys tells arguments apart.
func ArgumentKeys(args []Binding) string {
	out := ""
	for _, b := range args {
		out += "," + b.In.Resolve(b.Term).key + "=" + b.Term.String()
	}
	return out
}

// IsUnknown reports whether a term is the word for what is not known.
func IsUnknown(t *ast.Term) bool { return t.Value.Compare(ast.String(gate.Unknown)) == 0 }

// IsFalse reports whether a term is false.
func IsFalse(t *ast.Term) bool { return t != nil && t.Value.Compare(ast.Boolean(false)) == 0 }

// IsTrue reports whether a term is true.
func IsTrue(t *ast.Term) bool { return t != nil && t.Value.Compare(ast.Boolean(true)) == 0 }

// IsScalar reports whether a term is text, a number, a truth value or null.
func IsScalar(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return true
	}
	return false
}

// Elements are those of a list, set or object that stands in the source.
func Elements(t *ast.Term) []*ast.Term {
	var out []*ast.Term
	add := func(e *ast.Term) { out = append(out, e) }
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	case ast.Object:
		v.Foreach(func(_, e *ast.Term) { add(e) })
	}
	return out
}

// Literals are the elements when all of them are scalars, else nil.
func (s *Scope) Literals(t *ast.Term) []*ast.Term {
	out := Elements(t)
	for i, e := range out {
		if out[i] = s.Literal(e); !IsScalar(out[i]) {
			return nil
		}
	}
	return out
}

func kindsOf(literals []*ast.Term) Kind {
	var out Kind
	for _, t := range literals {
		out |= ofLiteral(t.Value).Kinds
	}
	return out
}

// Look is a value with what is known of it here.
func (s *Scope) Look(t *ast.Term) Place {
	p := s.Resolve(t)
	f, ok := s.Known[p.key]
	if p.Shape == nil || p.key == "" || !ok {
		return p
	}
	narrowed := *p.Shape
	if f.kinds != 0 {
		narrowed.Kinds &= f.kinds
	}
	if f.known || narrowed.Kinds&Text == 0 {
		narrowed.Words = slices.DeleteFunc(slices.Clone(narrowed.Words), func(w string) bool { return w == gate.Unknown })
		if len(narrowed.Words) == 0 && !narrowed.free {
			narrowed.Kinds &^= Text
		}
	}
	p.Shape = &narrowed
	return p
}

package regolint

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
	kinds kind
	// known: it is not the word for what is not known.
	known bool
}

// knowledge is what the conditions around an expression say, by the key of the
// value.
type knowledge map[string]fact

func (k knowledge) with(more knowledge) knowledge {
	if len(more) == 0 {
		return k
	}
	out := maps.Clone(k)
	if out == nil {
		out = knowledge{}
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
func (k knowledge) both(other knowledge) knowledge {
	out := knowledge{}
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
func (k knowledge) lasting() knowledge {
	out := maps.Clone(k)
	maps.DeleteFunc(out, func(key string, _ fact) bool { return !lastingKey.MatchString(key) })
	return out
}

// learn gives what a body's conditions say when all of them hold.
func (s *scope) learn(b ast.Body) knowledge {
	out := knowledge{}
	for _, e := range b {
		out = out.with(s.learnFrom(e))
	}
	return out
}

// learnFrom is what one condition says when it holds.
func (s *scope) learnFrom(e *ast.Expr) knowledge {
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
	if rules, _ := s.src.find(e.Operator()); rules != nil {
		return s.learnFromRules(e.Operator(), s.bound(e.Operands()))
	}
	return s.learnFromCall(e.Operator().String(), e.Operands())
}

var kindTests = map[string]kind{
	"is_number": kindNumber, "is_boolean": kindBoolean, "is_string": kindText, "is_object": kindObject, "is_array": kindArray,
}

// learnKinds is what a body's tests of a kind say, and nothing else: what it
// compares is what is looked at.
func (s *scope) learnKinds(b ast.Body) knowledge {
	out := knowledge{}
	for _, e := range b {
		if !e.Negated && e.IsCall() && kindTests[e.Operator().String()] != 0 {
			out = out.with(s.learnFrom(e))
		}
	}
	return out
}

func (s *scope) learnFromCall(op string, args []*ast.Term) knowledge {
	if k, ok := kindTests[op]; ok && len(args) == 1 {
		return s.fact(args[0], fact{kinds: k, known: k != kindText})
	}
	switch op {
	case "eq", "equal":
		return s.learnEqual(args[0], args[1]).with(s.learnEqual(args[1], args[0]))
	case "neq":
		for i := range args {
			if isUnknown(s.literal(args[i])) {
				return s.fact(args[1-i], fact{known: true})
			}
		}
	case "internal.member_2":
		elements := s.literals(args[1])
		if elements != nil && !slices.ContainsFunc(elements, isUnknown) {
			return s.fact(args[0], fact{kinds: kindsOf(elements), known: true})
		}
	}
	return nil
}

func (s *scope) learnEqual(t, to *ast.Term) knowledge {
	to = s.literal(to)
	if c, ok := t.Value.(ast.Call); ok && c[0].String() == "type_name" && to.Value.Compare(ast.String("number")) == 0 {
		return s.fact(c[1], fact{kinds: kindNumber, known: true})
	}
	if isScalar(to) && !isUnknown(to) {
		return s.fact(t, fact{kinds: kindsOf([]*ast.Term{to}), known: true})
	}
	return nil
}

func (s *scope) fact(t *ast.Term, f fact) knowledge {
	if key := s.resolve(t).key; key != "" {
		return knowledge{key: f}
	}
	return nil
}

// learnFromRules is what all ways to make a helper true have in common.
func (s *scope) learnFromRules(ref ast.Ref, args []binding) knowledge {
	rules, name := s.src.find(ref)
	if len(rules) == 0 || len(name) < len(ref) || isSet(rules[0]) || !s.src.step(s.depth) {
		return nil
	}
	id := name.String() + argumentKeys(args)
	if k, ok := s.src.learnt[id]; ok {
		return k
	}
	k := s.inCommon(rules, args).lasting()
	s.src.learnt[id] = k
	return k
}

func (s *scope) inCommon(rules []*ast.Rule, args []binding) knowledge {
	var out knowledge
	for _, r := range rules {
		switch {
		case r.Default && isFalse(r.Head.Value):
			continue
		case r.Default || r.Else != nil:
			return nil
		}
		learnt := s.src.of(r, args, s).learn(r.Body)
		if out != nil {
			learnt = out.both(learnt)
		}
		out = learnt
	}
	return out
}

// argumentKeys tells arguments apart.
func argumentKeys(args []binding) string {
	out := ""
	for _, b := range args {
		out += "," + b.in.resolve(b.term).key + "=" + b.term.String()
	}
	return out
}

func isUnknown(t *ast.Term) bool { return t.Value.Compare(ast.String(gate.Unknown)) == 0 }
func isFalse(t *ast.Term) bool   { return t != nil && t.Value.Compare(ast.Boolean(false)) == 0 }
func isTrue(t *ast.Term) bool    { return t != nil && t.Value.Compare(ast.Boolean(true)) == 0 }

func isScalar(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return true
	}
	return false
}

// elements are those of a list, set or object that stands in the source.
func elements(t *ast.Term) []*ast.Term {
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

// literals are the elements when all of them are scalars, else nil.
func (s *scope) literals(t *ast.Term) []*ast.Term {
	out := elements(t)
	for i, e := range out {
		if out[i] = s.literal(e); !isScalar(out[i]) {
			return nil
		}
	}
	return out
}

func kindsOf(literals []*ast.Term) kind {
	var out kind
	for _, t := range literals {
		out |= ofLiteral(t.Value).kinds
	}
	return out
}

// look is a value with what is known of it here.
func (s *scope) look(t *ast.Term) place {
	p := s.resolve(t)
	f, ok := s.known[p.key]
	if p.shape == nil || p.key == "" || !ok {
		return p
	}
	narrowed := *p.shape
	if f.kinds != 0 {
		narrowed.kinds &= f.kinds
	}
	if f.known || narrowed.kinds&kindText == 0 {
		narrowed.words = slices.DeleteFunc(slices.Clone(narrowed.words), func(w string) bool { return w == gate.Unknown })
		if len(narrowed.words) == 0 && !narrowed.free {
			narrowed.kinds &^= kindText
		}
	}
	p.shape = &narrowed
	return p
}

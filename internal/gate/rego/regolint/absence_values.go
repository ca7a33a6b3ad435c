package regolint

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// direction says which change of a value would let the grant hold: more of it,
// less of it, or either.
type direction int8

const (
	either direction = iota
	more
	fewer
)

var directionWords = [...]string{"either", "more", "fewer"}

// String returns the word.
func (d direction) String() string { return directionWords[d] }

// unless turns the direction around.
func (d direction) unless(turned bool) direction {
	if !turned || d == either {
		return d
	}
	return more + fewer - d
}

// sometimesEmpty are lists of the input that are empty also when nobody fills
// them.
var sometimesEmpty = map[string]string{"input.changes": "there is no change feed"}

// call looks at a function that stands as a condition.
func (a *absence) call(op ast.Ref, args []*ast.Term, v view) {
	if rules, _ := a.src.Find(op); rules != nil {
		a.helper(rules, v.s.Bound(args), v)
		return
	}
	switch name := op.String(); name {
	case "eq", "equal", "neq":
		a.equality(args[0], args[1], (name == "neq") != v.fails, v)
	case "lt", "lte":
		a.order(args[0], args[1], v)
	case "gt", "gte":
		a.order(args[1], args[0], v)
	case "internal.member_2", "internal.member_3":
		a.member(args, v)
	case "object.get":
		// A default that does not let the grant hold is sound.
		if d := args[2]; !d.Equal(ast.BooleanTerm(v.fails)) {
			a.value(ast.NewTerm(ast.Call(append([]*ast.Term{ast.NewTerm(op)}, args...))), either, v)
		}
	case "print", "internal.print":
	default:
		a.builtin(name, args, v)
	}
}

func (a *absence) builtin(name string, args []*ast.Term, v view) {
	for _, arg := range args {
		if p := v.s.Look(arg); name == "is_string" && !v.fails && p.Unknown() {
			a.report(v, "holds also when %s is \"unknown\", which is text", p.Path)
		}
		a.value(arg, either, v)
	}
}

// equality looks at two values that must be equal, or must differ, for the grant
// to hold.
func (a *absence) equality(x, y *ast.Term, differ bool, v view) {
	x, y = v.s.Literal(x), v.s.Literal(y)
	a.side(x, y, differ, v)
	a.side(y, x, differ, v)
}

// side looks at one of two values that are compared for equality.
func (a *absence) side(t, other *ast.Term, differ bool, v view) {
	if terms.IsScalar(t) {
		return
	}
	switch p := v.s.Look(t); {
	case terms.IsUnknown(other) && differ:
		v.present = true
	case terms.IsUnknown(other):
		a.report(v, "grants because %s is \"unknown\"", pathOf(p, t))
	case v.fails:
	case differ:
		a.mayDiffer(t, v)
	default:
		if p.Unknown() && couldBeUnknown(other, v) {
			a.report(v, "holds also when %s is \"unknown\"", p.Path)
		}
		if a.otherwise(t, other) {
			return
		}
	}
	a.value(t, towards(other).unless(differ), v)
}

// mayDiffer looks at a value that must differ from another.
func (a *absence) mayDiffer(t *ast.Term, v view) {
	if p := v.s.Look(t); p.Unknown() {
		a.report(v, "holds also when %s is \"unknown\"", p.Path)
	}
	a.spelt(t, v)
}

// spelling are functions of text that make other text of "unknown".
var spelling = map[string]bool{
	"concat": true, "json.marshal": true, "lower": true, "replace": true, "sprintf": true, "strings.reverse": true,
	"trim": true, "trim_prefix": true, "trim_space": true, "trim_suffix": true, "type_name": true, "upper": true,
}

// spelt looks for what may be unknown inside a value that must differ: what is
// made of "unknown" differs from what is made of the words that are known.
func (a *absence) spelt(t *ast.Term, v view) {
	parts := terms.Elements(t)
	if c, ok := t.Value.(ast.Call); ok && spelling[c[0].String()] {
		parts = c[1:]
	}
	for _, e := range parts {
		if p := v.s.Look(e); p.Unknown() {
			a.report(v, "holds also when %s is \"unknown\"", p.Path)
		}
		a.spelt(e, v)
	}
}

// towards is the change of a value that makes it equal another.
func towards(t *ast.Term) direction {
	if isEmpty(t) {
		return fewer
	}
	return either
}

// couldBeUnknown: two values that are both unknown are equal.
func couldBeUnknown(t *ast.Term, v view) bool { return !terms.IsScalar(t) && v.s.Look(t).Unknown() }

// otherwise reports whether a term gives another value than want when it is not
// there.
func (a *absence) otherwise(t, want *ast.Term) bool {
	c, ok := t.Value.(ast.Call)
	return ok && terms.IsScalar(want) && c[0].String() == "object.get" && terms.IsScalar(c[3]) && !c[3].Equal(want)
}

func isEmpty(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Number:
		return v.Compare(ast.Number("0")) == 0
	case *ast.Array:
		return v.Len() == 0
	case ast.Object:
		return v.Len() == 0
	case ast.Set:
		return v.Len() == 0
	case ast.Call: // set()
		return len(v) == 1 && v[0].String() == "set"
	}
	return false
}

// order looks at two values of which one must be smaller, and at what values of
// other kinds do to that: "unknown" sorts above every number.
func (a *absence) order(lesser, greater *ast.Term, v view) {
	a.value(lesser, fewer.unless(v.fails), v)
	a.value(greater, more.unless(v.fails), v)
	pl, pg := v.s.Look(lesser), v.s.Look(greater)
	if v.fails || onlyText(pl) || onlyText(pg) {
		return
	}
	a.sorts(pg, terms.AboveNumber, "above", v)
	a.sorts(pl, terms.BelowNumber, "below", v)
}

func onlyText(p terms.Place) bool { return p.Shape != nil && p.Compared()&^terms.Text == 0 }

// sorts reports a value that is a number, or something that sorts beyond all.
func (a *absence) sorts(p terms.Place, beyond terms.Kind, where string, v view) {
	if p.Shape == nil || p.Kinds&terms.Number == 0 || p.Kinds&beyond == 0 {
		return
	}
	other := *p.Shape
	other.Kinds &= beyond
	a.report(v, "holds also when %s is %s, which sorts %s every number: is_number(%s) comes first", p.Path, &other, where, p.Path)
}

// member looks at what must be in a collection.
func (a *absence) member(args []*ast.Term, v view) {
	collection, named := args[len(args)-1], false
	for _, e := range terms.Elements(collection) {
		named = named || terms.IsUnknown(v.s.Literal(e))
	}
	for _, x := range args[:len(args)-1] {
		in := v
		switch {
		case named && v.fails:
			in.present = true
		case named && !terms.IsScalar(x):
			a.report(v, "grants because %s is \"unknown\"", pathOf(v.s.Look(x), x))
		}
		a.value(x, either, in)
	}
	v.member = true
	a.value(collection, more.unless(v.fails), v)
}

// value looks at a term that a condition uses, of which a change in the direction
// lets the grant hold. Where the condition must fail, the value must be there and
// be known: else that is why it fails.
func (a *absence) value(t *ast.Term, d direction, v view) {
	if !a.src.Step(v.s.Depth) {
		return
	}
	switch x := t.Value.(type) {
	case ast.Var:
		b, ok := v.s.Lookup(x)
		switch {
		case !ok:
		case b.Each || isPath(b.Term):
			a.leaf(t, d, v)
		default:
			a.value(b.Term, d, v.inside(b))
		}
	case ast.Ref:
		a.refValue(t, x, d, v)
	case ast.Call:
		a.callValue(x, d, v)
	default:
		if body, element, distinct := comprehension(t); body != nil {
			a.elements(body, element, distinct, d, v.in(v.s.Within(body)))
		}
		for _, e := range terms.Elements(t) {
			a.value(e, either, v)
		}
	}
}

// comprehension takes one apart; distinct elements are there once.
func comprehension(t *ast.Term) (body ast.Body, element *ast.Term, distinct bool) {
	switch x := t.Value.(type) {
	case *ast.ArrayComprehension:
		return x.Body, x.Term, false
	case *ast.SetComprehension:
		return x.Body, x.Term, true
	case *ast.ObjectComprehension:
		return x.Body, x.Key, true
	}
	return nil, nil, false
}

// isPath reports whether a term leads into the input.
func isPath(t *ast.Term) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && !ref.HasPrefix(ast.DefaultRootRef)
}

func (a *absence) refValue(t *ast.Term, ref ast.Ref, d direction, v view) {
	rules, name := a.src.Find(ref)
	switch {
	case rules == nil:
		a.leaf(t, d, v)
	case terms.IsSet(rules[0]):
		a.collected(rules, name, d, v)
	default:
		a.computed(rules, nil, d, v)
		if len(ref) > len(name) {
			a.leaf(t, d, v)
		}
	}
}

// leaf looks at a value of the input or of the data.
func (a *absence) leaf(t *ast.Term, d direction, v view) {
	p := v.s.Look(t)
	if d != more {
		a.few(t, p, v)
	}
	ref, isRef := t.Value.(ast.Ref)
	switch {
	case !v.fails:
	case p.Path == "" && (!isRef || len(ref) < 2): // a variable that is iterated
	case !p.Present:
		a.report(v, "holds also when %s is missing", pathOf(p, t))
	case p.Unknown() && !v.present:
		a.report(v, "holds also when %s is \"unknown\"", p.Path)
	}
}

// few looks at a value of which less lets the grant hold.
func (a *absence) few(t *ast.Term, p terms.Place, v view) {
	list, _, element := strings.Cut(p.Path, "[_]")
	// What is asked of an element fails where there is none.
	if why, ok := sometimesEmpty[list]; ok && (!element || v.fails) {
		a.report(v.to(true), "holds also when %s is empty because %s", list, why)
	}
	if ref, ok := t.Value.(ast.Ref); ok && ref.HasPrefix(setpointRef) {
		a.emptySet(ref.String(), v)
	}
}

// growing are functions that give more for more of each argument.
var growing = map[string]bool{
	"count": true, "sum": true, "plus": true, "and": true, "or": true, "union": true, "intersection": true, "object.keys": true, "max": true,
}

func (a *absence) callValue(c ast.Call, d direction, v view) {
	op := c[0].Value.(ast.Ref)
	if rules, _ := a.src.Find(op); rules != nil {
		a.computed(rules, v.s.Bound(c[1:]), d, v)
		return
	}
	switch name := op.String(); {
	case name == "object.get":
		a.report(v, "has a value also when %s is missing: object.get gives its default then", c[2])
	case name == "minus":
		a.value(c[1], d, v)
		a.value(c[2], d.unless(true), v)
	case growing[name]:
		for _, arg := range c[1:] {
			a.value(arg, d, v)
		}
	case isComparison(name): // a comparison as a value
		a.call(op, c[1:], v)
	default:
		for _, arg := range c[1:] {
			a.value(arg, either, v)
		}
	}
}

func isComparison(name string) bool {
	switch name {
	case "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3":
		return true
	}
	return false
}

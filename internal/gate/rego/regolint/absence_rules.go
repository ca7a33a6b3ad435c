package regolint

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// ruleTruth looks at a helper that stands as a condition.
func (a *absence) ruleTruth(rules []*ast.Rule, name, ref ast.Ref, v view) {
	switch {
	case !terms.IsSet(rules[0]):
		if len(ref) > len(name) { // a field of what the helper holds
			a.computed(rules, nil, either, v)
			a.leaf(ast.NewTerm(ref), either, v)
			return
		}
		a.helper(rules, nil, v)
	case len(ref) > len(name):
		v.member = true
		a.collected(rules, name, more.unless(v.fails), v)
	case !v.fails:
		a.report(v, "is true even when the set is empty: count it")
	}
}

// again reports whether the same rules were looked at in the same way.
func (a *absence) again(what string, r *ast.Rule, args []terms.Binding, v view) bool {
	turn := ""
	if v.turn != nil && v.fails {
		turn = v.turn.String()
	}
	id := fmt.Sprintf("%s %p %v %v %v %s %s %v %d", what, r, v.fails, v.present, v.member, turn, terms.ArgumentKeys(args), v.s.Known, len(a.excuses))
	if a.seen[id] {
		return true
	}
	a.seen[id] = true
	return false
}

// helper looks at a rule, or a function, that is true or not.
func (a *absence) helper(rules []*ast.Rule, args []terms.Binding, v view) {
	if a.again("truth", rules[0], args, v) {
		return
	}
	open := slices.ContainsFunc(rules, func(r *ast.Rule) bool { return r.Default && !terms.IsFalse(r.Head.Value) })
	for _, first := range rules {
		for r := first; r != nil; r = r.Else {
			if !v.fails {
				a.branchHolds(first, r, args, v)
			} else if !r.Default {
				a.branchFails(r, args, v, open)
			}
		}
	}
}

// branchHolds looks at one way to make a helper true.
func (a *absence) branchHolds(first, r *ast.Rule, args []terms.Binding, v view) {
	switch {
	case terms.IsFalse(r.Head.Value):
		return
	case r.Default:
		v.now = headOf(r)
		a.enter(r, args, v, func(v view) { a.report(v, "holds also when none of its conditions can be evaluated") })
		return
	case r != first && alwaysTrue(r.Body):
		v.now = headOf(r)
		a.enter(r, args, v, func(v view) { a.report(v, "holds also when the conditions before it cannot be evaluated") })
	case r != first:
		a.before(first, r, args, v)
	}
	a.patterns(r, args, v)
	a.enter(r, args, v, func(v view) {
		a.body(r.Body, v)
		if !terms.IsTrue(r.Head.Value) {
			v.now = headOf(r)
			a.truth(r.Head.Value, v)
		}
	})
}

// before looks at the branches that must fail for an else to be reached.
func (a *absence) before(first, last *ast.Rule, args []terms.Binding, v view) {
	v.now = headOf(last)
	for r := first; r != last; r = r.Else {
		if r.Head.Value.Equal(last.Head.Value) {
			continue // either will do
		}
		a.enter(r, args, v, func(v view) { a.body(r.Body, v.to(true)) })
	}
}

// branchFails looks at one way to make a helper true that must not be.
func (a *absence) branchFails(r *ast.Rule, args []terms.Binding, v view, open bool) {
	if !open && !terms.IsFalse(r.Head.Value) {
		a.patterns(r, args, v)
	}
	a.enter(r, args, v, func(v view) {
		switch {
		case terms.IsFalse(r.Head.Value):
			a.body(r.Body, v.to(false))
		case !open: // else it is true whatever fails
			a.body(r.Body, v)
			if !terms.IsTrue(r.Head.Value) {
				a.truth(r.Head.Value, v)
			}
		}
	})
}

// patterns looks at literal parameters, which an argument must equal.
func (a *absence) patterns(r *ast.Rule, args []terms.Binding, v view) {
	for i, p := range r.Head.Args {
		if i < len(args) && terms.IsScalar(p) {
			a.equality(args[i].Term, p, v.fails, v.inside(args[i]))
		}
	}
}

func alwaysTrue(b ast.Body) bool {
	if len(b) != 1 {
		return false
	}
	t, ok := b[0].Terms.(*ast.Term)
	return ok && terms.IsTrue(t)
}

// collected looks at a set that rules add to.
func (a *absence) collected(rules []*ast.Rule, name ast.Ref, d direction, v view) {
	if set, _ := decisionSet(name); set != "" && d != more {
		a.emptySet(set, v)
		return
	}
	for _, r := range rules {
		if !a.again("set "+d.String(), r, nil, v) {
			a.enter(r, nil, v, func(v view) { a.elements(r.Body, r.Head.Key, true, d, v) })
		}
	}
}

func (a *absence) emptySet(set string, v view) {
	a.report(v.to(true), "rests on nothing being in %s, which is empty too when its rules cannot be evaluated; a grant needs conditions of its own", set)
}

// elements looks at what makes a collection: its body, and the term that each
// element is. What is unknown is another element than what was known, so it
// changes how many a set has, and what is not in it.
func (a *absence) elements(b ast.Body, element *ast.Term, distinct bool, d direction, v view) {
	if d != fewer {
		a.body(b, v.to(false))
	}
	if d != more {
		a.body(b, v.to(true))
	}
	if element != nil && (v.member && d != more || !v.member && distinct) {
		in := v.in(v.s.Knowing(v.s.Learn(b))).to(true)
		in.present = false
		a.value(element, either, in)
	}
}

// computed looks at a value that a rule or a function gives.
func (a *absence) computed(rules []*ast.Rule, args []terms.Binding, d direction, v view) {
	if a.again("value "+d.String(), rules[0], args, v) {
		return
	}
	for _, first := range rules {
		for r := first; r != nil; r = r.Else {
			switch {
			case r.Default:
				a.fallback(rules, r, args, v)
				continue
			case r != first:
				a.before(first, r, args, v)
			}
			a.enter(r, args, v, func(v view) {
				a.body(r.Body, v.to(false))
				if v.fails {
					a.body(r.Body, v)
				}
				a.value(r.Head.Value, d, v)
			})
		}
	}
}

// fallback looks at the rules that must give nothing for a default to count.
func (a *absence) fallback(rules []*ast.Rule, last *ast.Rule, args []terms.Binding, v view) {
	v.now = headOf(last)
	for _, first := range rules {
		for r := first; r != nil && !r.Default; r = r.Else {
			a.enter(r, args, v, func(v view) {
				v = v.to(true)
				a.body(r.Body, v)
				v.present = true
				a.value(r.Head.Value, either, v)
			})
		}
	}
}

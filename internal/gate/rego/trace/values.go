package trace

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

const (
	// maxExpression and maxValue are the longest source and value that are shown,
	// in bytes.
	maxExpression = 160
	maxValue      = 80
	// maxValues is how many values are shown of one expression.
	maxValues = 6
)

const undefined = "undefined"

// String is "name is value".
func (v Value) String() string { return v.Name + " is " + v.Value }

// view is the values that an expression was evaluated with.
type view struct {
	*tracing
	locals *ast.ValueMap
	input  *ast.Term
	out    []Value
}

// valuesAt are the operands of the expression that failed, and then the parts of
// input, data and rules from which they came.
func (t *tracing) valuesAt(f *failure) []Value {
	v := view{tracing: t, locals: f.locals, input: f.input}
	for _, operand := range operands(f.expr) {
		v.add(operand)
	}
	for _, e := range siblings(f.expr) {
		v.refs(e)
	}
	return v.out
}

// inputsOf are the parts of the input that a rule looked at.
func (t *tracing) inputsOf(f *frame) []Value {
	v := view{tracing: t, locals: f.locals, input: f.input}
	ast.WalkRefs(f.rule.Body, func(r ast.Ref) bool {
		if r.HasPrefix(ast.InputRootRef) {
			v.add(ast.NewTerm(r))
		}
		return false
	})
	return v.out
}

// operands are the terms that an expression compares.
func operands(e *ast.Expr) []*ast.Term {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return []*ast.Term{terms}
	case []*ast.Term:
		return terms[1:]
	case *ast.Every:
		return []*ast.Term{terms.Domain}
	case *ast.Not:
		var out []*ast.Term
		for _, inner := range terms.Body {
			out = append(out, operands(inner)...)
		}
		return out
	}
	return nil
}

// siblings are the expressions that the compiler made of one source, up to this.
func siblings(e *ast.Expr) []*ast.Expr {
	base := e.BaseCogeneratedExpr()
	out := []*ast.Expr{e}
	for _, s := range base.CogeneratedExprs() {
		if s.Index < e.Index && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// refs adds the references in an expression, but not the names of functions.
func (v *view) refs(e *ast.Expr) {
	for _, term := range operands(e) {
		ast.WalkTerms(term, func(t *ast.Term) bool {
			switch t.Value.(type) {
			case ast.Ref:
				v.add(t)
				return true
			case ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				return true
			}
			return false
		})
	}
}

// add adds a term under its name in the source. Constants say nothing new.
func (v *view) add(t *ast.Term) {
	name, value, ok := v.value(t)
	if !ok || len(v.out) >= maxValues {
		return
	}
	one := Value{Name: name, Value: value}
	if !slices.ContainsFunc(v.out, func(o Value) bool { return o.Name == name }) {
		v.out = append(v.out, one)
	}
}

func (v *view) value(t *ast.Term) (name, value string, ok bool) {
	switch x := t.Value.(type) {
	case ast.Var:
		name = textOf(t)
		if have := v.local(x); have != nil && name != "" {
			return name, shown(have), true
		}
	case ast.Ref:
		return v.reference(t, x)
	}
	return "", "", false
}

// reference looks a path up where it leads: into the input, the data or a local
// value. Where it goes over values, all are shown, or that there is none.
func (v *view) reference(t *ast.Term, r ast.Ref) (name, value string, ok bool) {
	name = textOf(t)
	from := v.root(r)
	if from == nil {
		return "", "", false
	}
	if r.IsGround() && (r.HasPrefix(ast.InputRootRef) || r.HasPrefix(ast.DefaultRootRef)) {
		name = r.String()
	}
	bound, over := v.bound(r)
	if over == 0 {
		return name, shown(find(from, bound)), name != ""
	}
	if found := alternatives(from, bound[1:]); name != "" && len(found) > 0 {
		return name, clip(strings.Join(found, " or "), maxValue), true
	}
	before := r[:over]
	return before.String(), shown(find(from, bound[:over])), !strings.HasPrefix(before.String(), "__local")
}

// root is what the path starts in. A path to a rule has none here: it is told as
// a helper.
func (v *view) root(r ast.Ref) ast.Value {
	switch {
	case r.HasPrefix(ast.InputRootRef):
		if v.input != nil {
			return v.input.Value
		}
		return v.tracing.input
	case r.HasPrefix(ast.DefaultRootRef):
		if len(v.built.Compiler.GetRules(r.GroundPrefix())) > 0 {
			return nil
		}
		return v.documents()
	}
	if x, ok := r[0].Value.(ast.Var); ok {
		return v.local(x)
	}
	return nil
}

// bound puts values in the place of variables; over is the first place without
// one, over whose values an expression goes.
func (v *view) bound(r ast.Ref) (out ast.Ref, over int) {
	out = slices.Clone(r)
	for i, part := range r[1:] {
		x, isVar := part.Value.(ast.Var)
		if !isVar {
			continue
		}
		have := v.local(x)
		switch {
		case have != nil:
			out[i+1] = ast.NewTerm(have)
		case over == 0:
			over = i + 1
		}
	}
	return out, over
}

// alternatives are the values at the end of a path that goes over values, each
// once.
func alternatives(from ast.Value, path ast.Ref) (out []string) {
	if len(path) == 0 {
		return []string{shown(from)}
	}
	add := func(v ast.Value) {
		for _, s := range alternatives(v, path[1:]) {
			if len(out) < maxValues && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	if _, isVar := path[0].Value.(ast.Var); !isVar {
		if have, err := from.Find(path[:1]); err == nil {
			add(have)
		}
		return out
	}
	switch x := from.(type) {
	case *ast.Array:
		x.Foreach(func(t *ast.Term) { add(t.Value) })
	case ast.Set:
		x.Foreach(func(t *ast.Term) { add(t.Value) })
	case ast.Object:
		x.Foreach(func(_, t *ast.Term) { add(t.Value) })
	}
	return out
}

func (v *view) local(x ast.Var) ast.Value {
	if v.locals == nil {
		return nil
	}
	return v.locals.Get(x)
}

// documents are the data files.
func (t *tracing) documents() ast.Value {
	if t.data == nil {
		value, err := ast.InterfaceToValue(t.built.Data)
		if err != nil {
			value = ast.NewObject() // It was loaded, so it is a value.
		}
		t.data = value
	}
	return t.data
}

// find is the value at the end of a path, or nil.
func find(from ast.Value, r ast.Ref) ast.Value {
	have, err := from.Find(r[1:])
	if err != nil {
		return nil
	}
	return have
}

// textOf is the source of a term.
func textOf(t *ast.Term) string {
	if t.Location == nil {
		return ""
	}
	return clip(oneLine(string(t.Location.Text)), maxExpression)
}

func shown(v ast.Value) string {
	if v == nil {
		return undefined
	}
	return clip(v.String(), maxValue)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

package regolint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// lintAbsence finds grants that rest on something being absent: what is not
// there, or not known, must never be what lets an action run. It follows each
// grant through the rules that it uses, and asks of every expression whether it
// could hold (or, below a negation, fail) because a value is missing or unknown.
func lintAbsence(s *terms.Source) rego.Findings {
	a := absence{src: s, found: map[cause]map[string]bool{}, excused: map[*ast.Annotations]bool{}}
	for _, r := range grants(s) {
		a.grant, a.seen = reasonOf(r), map[string]bool{}
		a.readsInput(r)
		a.enter(r, nil, view{}, func(v view) { a.body(r.Body, v) })
	}
	out := a.findings()
	return append(out, a.idle()...)
}

// cause is one thing that makes grants rest on absence.
type cause struct {
	file string
	line int
	text string
}

type absence struct {
	src *terms.Source
	// grant is the reason of the one looked at, seen where it was already.
	grant string
	seen  map[string]bool
	// found has the grants of each cause.
	found map[cause]map[string]bool
	// excuses are the annotations around this place that say why absence is safe
	// here; excused are those that were needed.
	excuses []*ast.Annotations
	excused map[*ast.Annotations]bool
}

// view is how an expression is looked at.
type view struct {
	s *terms.Scope
	// fails: it is the expression's failing that lets the grant hold.
	fails bool
	// present: the value need not be known, only there.
	present bool
	// member: of a collection it counts what is in it, not how much.
	member bool
	// now is the expression itself, turn the one that makes failing count.
	now, turn *ast.Location
}

// in is the view from another scope.
func (v view) in(s *terms.Scope) view {
	v.s = s
	return v
}

// inside is the view from where a variable got its value, with what is known here.
func (v view) inside(b terms.Binding) view { return v.in(b.In.Knowing(v.s.Known)) }

// to looks for holding or for failing.
func (v view) to(fails bool) view {
	if fails && !v.fails {
		v.turn = v.now
	}
	v.fails = fails
	return v
}

func (a *absence) findings() rego.Findings {
	var out rego.Findings
	for c, grants := range a.found {
		names := slices.Sorted(maps.Keys(grants))
		word := "grant"
		if len(names) > 1 {
			word = "grants"
		}
		out = append(out, rego.Finding{File: c.file, Line: c.line, Code: CodeAbsence, Severity: rego.SeverityLint,
			Text: fmt.Sprintf("%s %s: %s", word, strings.Join(names, ", "), c.text)})
	}
	return out
}

const advice = "; ask for what must be there, or say in METADATA custom.absence why it is safe"

// report notes that the grant may rest on absence, because of this.
func (a *absence) report(v view, because string, args ...any) {
	if len(a.excuses) > 0 {
		for _, e := range a.excuses {
			a.excused[e] = true
		}
		return
	}
	at := v.now
	if v.fails && v.turn != nil {
		at = v.turn
	}
	if at == nil {
		return
	}
	c := cause{at.File, at.Row, fmt.Sprintf("%s %s", text(at), fmt.Sprintf(because, args...)) + advice}
	if a.found[c] == nil {
		a.found[c] = map[string]bool{}
	}
	a.found[c][a.grant] = true
}

// enter looks at a rule from its own scope, with what its metadata excuses.
func (a *absence) enter(r *ast.Rule, args []terms.Binding, v view, look func(view)) {
	in := a.src.Of(r, args, v.s)
	if v.present = false; !a.src.Step(in.Depth) {
		return
	}
	for _, note := range r.Annotations {
		if excuse, ok := note.Custom[excuseKey].(string); ok && excuse != "" {
			a.excuses = append(a.excuses, note)
			defer func() { a.excuses = a.excuses[:len(a.excuses)-1] }()
			break
		}
	}
	look(v.in(in))
}

// idle are excuses that excuse nothing: what they speak of has gone.
func (a *absence) idle() rego.Findings {
	var out rego.Findings
	for _, r := range a.src.Rules {
		for _, note := range r.Annotations {
			switch excuse := note.Custom[excuseKey].(type) {
			case nil:
			case string:
				if excuse != "" && !a.excused[note] {
					out = append(out, at(r.Location, CodeAbsence, rego.SeverityWarning, "custom.absence excuses nothing: no grant rests on absence here"))
				}
			default:
				out = append(out, at(r.Location, CodeAbsence, rego.SeverityLint, "custom.absence must say in words why it is safe"))
			}
		}
	}
	return out
}

// readsInput refuses a grant that holds whatever the input says.
func (a *absence) readsInput(r *ast.Rule) {
	found, seen := false, map[*ast.Rule]bool{}
	var walk func(r *ast.Rule)
	walk = func(r *ast.Rule) {
		if seen[r] || found {
			return
		}
		seen[r] = true
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			found = found || ref.HasPrefix(ast.InputRootRef)
			rules, _ := a.src.Find(ref)
			for _, next := range rules {
				walk(next)
			}
			return found
		})
	}
	if walk(r); !found {
		a.enter(r, nil, view{now: headOf(r)}, func(v view) { a.report(v, "grants whatever the input says") })
	}
}

// body looks at expressions that hold together, or of which one fails.
func (a *absence) body(b ast.Body, v view) {
	s := v.s
	if !v.fails {
		s = s.Knowing(s.Learn(b))
	}
	for _, e := range b {
		a.expr(e, v.in(s))
		if v.fails { // the next one is looked at failing while this one holds
			s = s.Knowing(s.LearnFrom(e))
		}
	}
}

func (a *absence) expr(e *ast.Expr, v view) {
	if !a.src.Step(v.s.Depth) {
		return
	}
	v.now, v.member = e.Location, false
	if len(e.With) > 0 {
		a.report(v, "judges another input than the one that is given: with belongs into tests")
		return
	}
	if e.Negated {
		plain := e.Copy()
		plain.Negated = false
		a.plain(plain, v.to(!v.fails))
		return
	}
	a.plain(e, v)
}

func (a *absence) plain(e *ast.Expr, v view) {
	switch t := e.Terms.(type) {
	case *ast.Every:
		a.every(t, v)
	case *ast.Term:
		a.truth(t, v)
	case []*ast.Term:
		if _, to, ok := v.s.Definition(e); ok {
			if v.present = true; v.fails {
				a.value(to, fewer, v)
			}
			return
		}
		a.call(t[0].Value.(ast.Ref), t[1:], v)
	}
}

// every holds more easily the fewer elements there are.
func (a *absence) every(e *ast.Every, v view) {
	d := fewer
	if v.fails {
		d = more
	}
	a.value(e.Domain, d, v)
	a.body(e.Body, v.in(v.s.Every(e)))
}

// truth looks at a term that stands as a condition.
func (a *absence) truth(t *ast.Term, v view) {
	switch x := t.Value.(type) {
	case ast.Call:
		a.call(x[0].Value.(ast.Ref), x[1:], v)
	case ast.Var:
		if b, ok := v.s.Lookup(x); ok && !b.Each {
			a.truth(b.Term, v.inside(b))
		}
	case ast.Ref:
		if rules, name := a.src.Find(x); rules != nil {
			a.ruleTruth(rules, name, x, v)
			return
		}
		a.standing(t, v)
	case ast.String, ast.Number, ast.Boolean, ast.Null:
	default:
		a.value(t, either, v)
	}
}

// standing looks at a value of the input or the data that is a condition by
// itself: it holds unless it is false or missing.
func (a *absence) standing(t *ast.Term, v view) {
	p := v.s.Look(t)
	if !v.fails && p.Unknown() {
		a.report(v, "holds also when %s is \"unknown\"", p.Path)
	}
	if v.fails && !p.Present {
		a.report(v, "holds also when %s is missing", pathOf(p, t))
	}
}

// pathOf names a value for people.
func pathOf(p terms.Place, t *ast.Term) string {
	if p.Path != "" {
		return p.Path
	}
	if t.Location == nil { // one that was put together from parts
		return t.String()
	}
	return string(t.Location.Text)
}

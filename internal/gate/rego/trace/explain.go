package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxDepth bounds how far helpers are followed.
const maxDepth = 10

// rules tells what became of every rule of a set.
func (t *tracing) rules(rec *record) []Rule {
	out := make([]Rule, 0, len(t.sets))
	for _, s := range t.sets {
		r := Rule{Set: s.Set, Reason: s.Reason, Title: s.Title, File: s.File, Line: s.Line}
		top := rec.tops[s.compiled]
		switch {
		case top == nil:
			r.Note = t.notAsked(s, rec.failed)
		case rec.failed != nil && rec.last.top == top:
			r.Note = "could not be evaluated: " + failureText(rec.failed)
		case top.exited:
			r.Fired = true
		case top.best != nil && !failedAt(rec.failed, top.best):
			r.Stopped = t.stop(top.best, 0)
		case rec.failed != nil:
			r.Note = "could not be evaluated: " + failureText(rec.failed)
		default:
			r.Note = "did not fire"
		}
		out = append(out, r)
	}
	return out
}

// notAsked says why a rule was not evaluated.
func (t *tracing) notAsked(s setRule, failed error) string {
	if owner := strings.TrimPrefix(s.Package, teamPrefix); s.team() && owner != t.owner {
		return fmt.Sprintf("not asked: it counts for the services of owner %s alone", owner)
	}
	if failed != nil {
		return "not asked: the policy failed before"
	}
	values := t.unmatched(s.compiled)
	if len(values) == 0 {
		return "not asked: the index over rules left it out"
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.String()
	}
	return "not asked: the index over rules left it out, because " + strings.Join(texts, ", ")
}

// unmatched are the parts of the input that a rule compares with a constant that
// they are not.
func (t *tracing) unmatched(r *ast.Rule) (out []Value) {
	for _, expr := range r.Body {
		if !expr.IsEquality() || expr.Negated {
			continue
		}
		for i, other := range []int{1, 0} {
			ref, ok := expr.Operand(i).Value.(ast.Ref)
			constant := expr.Operand(other).Value
			if !ok || !ref.HasPrefix(ast.InputRootRef) || !ref.IsGround() || !ast.IsConstant(constant) {
				continue
			}
			if have := find(t.input, ref); have == nil || have.Compare(constant) != 0 {
				out = append(out, Value{Name: ref.String(), Value: shown(have)})
			}
		}
	}
	return out
}

func failureText(err error) string {
	var e *topdown.Error
	if errors.As(err, &e) && e.Location != nil {
		return fmt.Sprintf("%s:%d: %s", e.Location.File, e.Location.Row, oneLine(e.Message))
	}
	return oneLine(err.Error())
}

// failedAt reports whether the expression is the one that the engine gave up on,
// or asks a rule that holds it: it has no value then, which is not the same as
// false.
func failedAt(err error, f *failure) bool {
	var e *topdown.Error
	if !errors.As(err, &e) || e.Location == nil {
		return false
	}
	if at := f.expr.Location; at != nil && at.File == e.Location.File && at.Row == e.Location.Row {
		return true
	}
	return slices.ContainsFunc(f.kids, func(k *frame) bool { return k.failedAt(err) })
}

func (f *frame) failedAt(err error) bool {
	if f.best != nil && failedAt(err, f.best) {
		return true
	}
	for _, kids := range f.kids {
		if slices.ContainsFunc(kids, func(k *frame) bool { return k.failedAt(err) }) {
			return true
		}
	}
	return false
}

// stop follows a failure down to what made it one.
func (t *tracing) stop(f *failure, depth int) *Stop {
	// What is false within an every, and, or says more than the whole.
	if inner := within(f); inner != nil {
		return t.stop(inner, depth)
	}
	at := source(f.expr)
	s := &Stop{File: at.File, Line: at.Row, Expression: expressionText(at), Values: t.valuesAt(f), More: f.more}
	if depth >= maxDepth {
		return s
	}
	s.Helpers = t.helpers(f, depth)
	return s
}

// helpers are the rules that a failed expression asked, each once. Those that are
// for other arguments are told of only where all are.
func (t *tracing) helpers(f *failure, depth int) (out []Helper) {
	negated := isNegation(f.expr)
	var others []Helper
	for _, kid := range askedRules(f.kids, negated) {
		h, ok := t.helper(kid, negated, depth)
		switch {
		case !ok || slices.ContainsFunc(out, func(o Helper) bool { return o.File == h.File && o.Line == h.Line }):
		case h.Value == otherArguments:
			others = append(others, h)
		default:
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return others
	}
	return out
}

// within is the failure in the body of an every, or in a side of and, or.
func within(f *failure) *failure {
	bodies := f.kids
	switch f.expr.Terms.(type) {
	case *ast.Every:
		bodies = nil
		for _, domain := range f.kids {
			for _, kids := range domain.kids {
				bodies = append(bodies, kids...)
			}
		}
	case *ast.LogicalAnd, *ast.LogicalOr:
	default:
		return nil
	}
	for _, b := range bodies {
		if b.rule == nil && !b.exited && b.best != nil {
			return b.best
		}
	}
	return nil
}

func isNegation(e *ast.Expr) bool {
	_, explicit := e.Terms.(*ast.Not)
	return e.Negated || explicit
}

// askedRules are the frames of rules right below an expression. Those of a
// negation stand in the body that was true.
func askedRules(kids []*frame, negated bool) (out []*frame) {
	for _, k := range kids {
		switch {
		case k.rule != nil:
			out = append(out, k)
		case negated:
			out = append(out, askedRules(k.held, false)...)
		}
	}
	return out
}

// helper tells of a rule that an expression asked. Under a negation the one that
// was true is why; otherwise those that were not.
func (t *tracing) helper(f *frame, negated bool, depth int) (Helper, bool) {
	at := f.rule.Location
	if at == nil || f.rule.Default || negated && !f.exited {
		return Helper{}, false
	}
	h := Helper{Name: helperName(f.rule), File: at.File, Line: at.Row}
	switch {
	case f.exited:
		h.Value = "true"
		if f.value != nil {
			h.Value = shown(f.value.Value)
		}
		h.Values = t.inputsOf(f)
	case f.best != nil:
		h.Stopped = t.stop(f.best, depth+1)
	default:
		h.Value = otherArguments
	}
	return h, true
}

// otherArguments: the head of the rule does not fit what it was asked for.
const otherArguments = "for other arguments"

func helperName(r *ast.Rule) string {
	name := r.Head.Ref().String()
	if r.Module != nil && r.Module.Package.Path.String() == "data.setpoint.gate" {
		return name
	}
	return strings.TrimPrefix(r.Ref().String(), "data.")
}

// expressionText is one line. The place of an expression after else holds the
// word too.
func expressionText(at *ast.Location) string {
	text := string(at.Text)
	if strings.HasPrefix(text, "else") {
		if _, after, ok := strings.Cut(text, " if "); ok {
			text = after
		}
	}
	return clip(oneLine(text), maxExpression)
}

// source is the expression as the author wrote it.
func source(e *ast.Expr) *ast.Location {
	if at := e.BaseCogeneratedExpr().Location; at != nil {
		return at
	}
	if e.Location != nil {
		return e.Location
	}
	return &ast.Location{}
}

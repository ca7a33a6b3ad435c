package regotest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

const (
	// maxText is the longest source or value that is shown in one line, in bytes.
	maxText = 200
	// maxStops bounds how many conditions are listed for one failure.
	maxStops = 30
)

// falseAt is the last expression with a place that was false, or -1. An every
// is false because of an expression inside, which says more.
func falseAt(events []*topdown.Event) int {
	for i, e := range slices.Backward(events) {
		if e.Op != topdown.FailOp || e.Location == nil || e.Location.File == "" {
			continue
		}
		expr, ok := e.Node.(*ast.Expr)
		if !ok {
			continue
		}
		if _, every := expr.Terms.(*ast.Every); !every {
			return i
		}
	}
	return -1
}

// stops are the conditions of rules that were false while the expression at
// that index was evaluated. What a rule asks of another one is left to the
// trace.
func (d detail) stops(events []*topdown.Event, at int) []Expression {
	direct := map[uint64]bool{}
	var out []Expression
	for _, e := range events[start(events, at):at] {
		if e.Op == topdown.EnterOp && e.HasRule() && e.ParentID == events[at].QueryID {
			direct[e.QueryID] = true
		}
		if e.Op != topdown.FailOp || !direct[e.QueryID] || !d.isRule(e.Location) {
			continue
		}
		if x := d.expression(e); len(out) < maxStops && !slices.ContainsFunc(out, x.same) {
			out = append(out, x)
		}
	}
	return out
}

// same reports whether it is the same source, for whatever values.
func (x Expression) same(o Expression) bool {
	return o.File == x.File && o.Line == x.Line && o.Text == x.Text
}

// isRule reports whether a place is in a file of rules, not of tests.
func (d detail) isRule(at *ast.Location) bool { return at != nil && d.built.Rules[at.File] != nil }

// start is where the source of the expression at an index began to be
// evaluated: the compiler makes several expressions of one.
func start(events []*topdown.Event, at int) int {
	last := events[at]
	from := at
	for i := at - 1; i >= 0; i-- {
		e := events[i]
		if e.QueryID != last.QueryID || !e.HasExpr() {
			continue
		}
		if !within(source(e), source(last)) {
			break
		}
		from = i
	}
	return from
}

// within reports whether one source is a part of the other.
func within(part, whole *ast.Location) bool {
	if part == nil || whole == nil || part.File != whole.File {
		return false
	}
	return part.Offset >= whole.Offset && part.Offset+len(part.Text) <= whole.Offset+len(whole.Text)
}

// source is the expression as the author wrote it.
func source(e *topdown.Event) *ast.Location {
	if expr, ok := e.Node.(*ast.Expr); ok {
		if at := expr.BaseCogeneratedExpr().Location; at != nil {
			return at
		}
	}
	return e.Location
}

func (d detail) expression(e *topdown.Event) Expression {
	at := source(e)
	return Expression{
		File: d.file(at.File), Line: at.Row, Text: short(strings.Join(strings.Fields(string(at.Text)), " ")),
		Input: inputValues(string(at.Text), e.Input()),
	}
}

// inputValues are the fields of the input that a source names, with the values
// that they had.
func inputValues(text string, input *ast.Term) (out []Value) {
	body, err := ast.ParseBodyWithOpts(text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil || input == nil {
		return nil // Only a help: the source itself is shown anyway.
	}
	ast.WalkRefs(body, func(ref ast.Ref) bool {
		if ref = ref.ConstantPrefix(); len(ref) < 2 || !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		v := Value{Name: ref.String(), Value: "undefined"}
		if found, err := input.Value.Find(ref[1:]); err == nil {
			v.Value = short(found.String())
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
		return false
	})
	return out
}

// picture is the source with the values of its variables below, without the
// indentation that all lines share.
func picture(e *topdown.Event) string {
	var b bytes.Buffer
	if err := topdown.PrettyEvent(&b, e, topdown.PrettyEventOpts{PrettyVars: true}); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	common := -1
	for _, l := range lines {
		if indent := len(l) - len(strings.TrimLeft(l, " \t")); strings.TrimSpace(l) != "" && (common < 0 || indent < common) {
			common = indent
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(max(common, 0), len(l)):], " \t")
	}
	return strings.Join(lines, "\n")
}

func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

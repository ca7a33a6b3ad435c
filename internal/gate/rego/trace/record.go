package trace

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// setNames are the rule sets, strictest first.
var setNames = []string{"deny", "escalate", "approval", "auto"}

const teamPrefix = "setpoint.team."

// setRule is a rule of a set as it was compiled.
type setRule struct {
	gate.Rule
	Set      string
	compiled *ast.Rule
}

func (r setRule) team() bool { return strings.HasPrefix(r.Package, teamPrefix) }

func setRules(c *ast.Compiler, known []gate.Rule) []setRule {
	var out []setRule
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			set := string(r.Head.Name)
			if ref := r.Head.Ref(); len(ref) > 0 {
				set = ref[0].String()
			}
			if !slices.Contains(setNames, set) || r.Location == nil {
				continue
			}
			i := slices.IndexFunc(known, func(k gate.Rule) bool { return isRule(k, r) })
			if i >= 0 {
				out = append(out, setRule{Rule: known[i], Set: set, compiled: r})
			}
		}
	}
	slices.SortFunc(out, func(a, b setRule) int {
		return cmp.Or(slices.Index(setNames, a.Set)-slices.Index(setNames, b.Set), strings.Compare(a.File, b.File),
			a.Line-b.Line, strings.Compare(a.Reason, b.Reason))
	})
	return out
}

// isRule compares the place, and the reason where the compiler left it in the
// head: two rules may stand in one line.
func isRule(k gate.Rule, r *ast.Rule) bool {
	if k.File != r.Location.File || k.Line != r.Location.Row {
		return false
	}
	key := r.Head.Key
	if key == nil {
		return true
	}
	if o, ok := key.Value.(ast.Object); ok {
		key = o.Get(ast.InternedTerm("reason"))
	}
	if key == nil {
		return true
	}
	reason, ok := key.Value.(ast.String)
	return !ok || string(reason) == k.Reason
}

// record is what an evaluation did: a tree of frames.
type record struct {
	cancel context.CancelFunc
	frames map[uint64]*frame
	// tops are the rules of the sets, at the first time that the query itself
	// asked for them.
	tops map[*ast.Rule]*frame
	sets map[*ast.Rule]bool
	// last is the frame of the last event.
	last *frame
	over bool
	// failed is the error that ended the evaluation.
	failed error
}

// frame is the evaluation of one body: of a rule, a negation, an every, a
// comprehension.
type frame struct {
	up *frame
	// rule is nil for a body inside of one; top is the rule of a set in which it is.
	rule *ast.Rule
	top  *frame
	// every is the expression over whose values the frame goes.
	every *ast.Expr
	// at is the index of the expression that is evaluated, kids are the frames
	// that each expression led to the last time.
	at   int
	kids map[int][]*frame
	// best is where it got furthest.
	best *failure
	// exited: it was true, and these are the values that it was true with.
	exited bool
	locals *ast.ValueMap
	input  *ast.Term
	value  *ast.Term
	held   []*frame
}

// failure is an expression that had no solution.
type failure struct {
	expr   *ast.Expr
	locals *ast.ValueMap
	input  *ast.Term
	kids   []*frame
	more   int
}

func newRecord(rules []setRule, cancel context.CancelFunc) *record {
	r := &record{cancel: cancel, frames: map[uint64]*frame{}, tops: map[*ast.Rule]*frame{}, sets: map[*ast.Rule]bool{}}
	for _, s := range rules {
		r.sets[s.compiled] = true
	}
	return r
}

// Enabled says yes.
func (r *record) Enabled() bool { return true }

// Config asks for no values of variables: those that are kept are looked up, and
// the engine would copy all of them at every step.
func (r *record) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent notes one step.
func (r *record) TraceEvent(e topdown.Event) {
	if r.over {
		return
	}
	if e.Op == topdown.EnterOp {
		r.enter(e)
		return
	}
	f := r.frames[e.QueryID]
	if f == nil {
		return
	}
	r.last = f
	if e.Op == topdown.ExitOp && !f.exited {
		f.exit(e)
	}
	if expr, ok := e.Node.(*ast.Expr); ok {
		f.step(e, expr)
	}
}

// step notes what became of an expression of the body.
func (f *frame) step(e topdown.Event, expr *ast.Expr) {
	switch e.Op {
	case topdown.EvalOp:
		f.at = expr.Index
		delete(f.kids, f.at)
	case topdown.FailOp:
		f.fail(e, expr)
	}
}

func (r *record) enter(e topdown.Event) {
	if len(r.frames) >= maxFrames {
		r.over = true
		r.cancel()
		return
	}
	f := &frame{kids: map[int][]*frame{}}
	f.rule, _ = e.Node.(*ast.Rule)
	f.every, _ = e.Node.(*ast.Expr)
	if up := r.frames[e.ParentID]; up != nil && e.ParentID != e.QueryID {
		f.up, f.top = up, up.top
		up.kids[up.at] = append(up.kids[up.at], f)
	}
	if f.rule != nil && f.top == nil {
		f.top = f
		if r.sets[f.rule] && r.tops[f.rule] == nil {
			r.tops[f.rule] = f
		}
	}
	r.frames[e.QueryID], r.last = f, f
}

// fail keeps the expression that stands furthest in the body, and of several
// tries the first.
func (f *frame) fail(e topdown.Event, expr *ast.Expr) {
	if f.every != nil && f.every == expr {
		return // The frame above has it as its own.
	}
	switch {
	case f.best != nil && expr.Index < f.best.expr.Index:
		return
	case f.best != nil && expr.Index == f.best.expr.Index:
		f.best.more++
		return
	}
	f.best = &failure{expr: expr, locals: locals(e, siblings(expr)...), input: e.Input(), kids: f.kids[expr.Index]}
}

// locals are the values that the variables in expressions have at an event.
func locals(e topdown.Event, exprs ...*ast.Expr) *ast.ValueMap {
	out := ast.NewValueMap()
	for _, x := range exprs {
		ast.WalkVars(x, func(v ast.Var) bool {
			if t := e.Plug(ast.NewTerm(v)); t.IsGround() {
				out.Put(v, t.Value)
			}
			return false
		})
	}
	return out
}

func (f *frame) exit(e topdown.Event) {
	f.exited, f.input = true, e.Input()
	if f.rule != nil {
		f.locals = locals(e, f.rule.Body...)
		if f.rule.Head.Value != nil {
			f.value = e.Plug(f.rule.Head.Value)
		}
	}
	at := make([]int, 0, len(f.kids))
	for i := range f.kids {
		at = append(at, i)
	}
	slices.Sort(at)
	for _, i := range at {
		f.held = append(f.held, f.kids[i]...)
	}
}

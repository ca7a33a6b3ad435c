package regotest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/lineage"
)

// maxEvents bounds the trace of one test, in steps of the engine: one that goes
// through everything would fill the memory.
const maxEvents = 20_000

// detail tells why tests fail.
type detail struct {
	*suite
	compiler *ast.Compiler
	store    storage.Store
	txn      storage.Transaction
}

// explain evaluates a rule once more when one of its tests failed, and notes
// what the engine did.
func (d detail) explain(ctx context.Context, rule *ast.Rule, tests []caseTest) ([]Test, error) {
	out := make([]Test, len(tests))
	for i, t := range tests {
		out[i] = t.Test
	}
	if !d.Detail || !slices.ContainsFunc(out, func(t Test) bool { return t.Result == Failed }) {
		return out, nil
	}
	events, missing, err := d.record(ctx, rule)
	if err != nil {
		return nil, err
	}
	for i, t := range tests {
		switch {
		case t.Result != Failed:
		case missing != "":
			out[i].Text += "; " + missing
		default:
			d.why(&out[i], ofCase(events, t.keys))
		}
	}
	return out, nil
}

// recorder keeps the steps of the engine up to a bound.
type recorder struct {
	topdown.BufferTracer
	over bool
	// stop ends the evaluation.
	stop context.CancelFunc
}

// TraceEvent keeps one step.
func (r *recorder) TraceEvent(e topdown.Event) {
	if len(r.BufferTracer) >= maxEvents {
		r.over = true
		r.stop()
		return
	}
	r.BufferTracer.TraceEvent(e)
}

// record evaluates without the index over rules: a rule that the index leaves
// out would not be seen, and it is the one that an author asks about. Instead
// of the events it may tell why they are missing; the result stands without.
func (d detail) record(ctx context.Context, rule *ast.Rule) (events []*topdown.Event, missing string, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	q, err := oparego.New(
		oparego.Store(d.store), oparego.Transaction(d.txn), oparego.Compiler(d.compiler),
		oparego.Query(testRef(rule).String()),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("look at a failing test: %w", err)
	}
	r := recorder{stop: cancel}
	_, err = q.Eval(ctx, oparego.EvalTransaction(d.txn), oparego.EvalQueryTracer(&r), oparego.EvalRuleIndexing(false))
	switch {
	case r.over:
		return nil, fmt.Sprintf("it takes more than %d steps, too many to show", maxEvents), nil
	case err != nil:
		return nil, "looking at why failed: " + d.errorText(err), nil
	}
	return r.BufferTracer, "", nil
}

// testRef is the path up to the name test_…, without the keys of cases.
func testRef(rule *ast.Rule) ast.Ref {
	ref := rule.Head.Ref().GroundPrefix()
	for i, term := range ref {
		name := ""
		switch v := term.Value.(type) {
		case ast.Var:
			name = string(v)
		case ast.String:
			name = string(v)
		}
		if strings.HasPrefix(name, tester.TestPrefix) {
			ref = ref[:i+1]
			break
		}
	}
	return rule.Module.Package.Path.Extend(ref)
}

// ofCase are the events of one case: from where it is named to where the next
// one is, the last time that it is.
func ofCase(events []*topdown.Event, keys []string) []*topdown.Event {
	if keys == nil {
		return events
	}
	var out []*topdown.Event
	from := -1
	for i, e := range events {
		if e.Op != topdown.TestCaseOp {
			continue
		}
		if from >= 0 {
			out, from = events[from:i], -1
		}
		if slices.Equal(caseKeys(e), keys) {
			from = i
		}
	}
	if from >= 0 {
		out = events[from:]
	}
	return out
}

// caseKeys are the keys of the case that an event names, written as the tester
// does.
func caseKeys(e *topdown.Event) []string {
	expr, ok := e.Node.(*ast.Expr)
	if !ok {
		return nil
	}
	list, ok := expr.Operand(0).Value.(*ast.Array)
	if !ok {
		return nil
	}
	var keys []string
	list.Foreach(func(t *ast.Term) {
		v, err := ast.JSON(t.Value)
		if s, ok := v.(string); ok && err == nil {
			keys = append(keys, s)
			return
		}
		text, _ := json.Marshal(v) // What was JSON is JSON.
		keys = append(keys, string(text))
	})
	return keys
}

// why fills in what the events tell about a failure.
func (d detail) why(t *Test, events []*topdown.Event) {
	if i := falseAt(events); i >= 0 {
		at := d.expression(events[i])
		if d.Values {
			at.Values = picture(events[i])
		}
		t.FailedAt, t.Stopped = &at, d.stops(events, i)
	}
	if d.Trace == TraceNone {
		return
	}
	if d.Trace == TraceFails {
		events = lineage.Fails(events)
	} else {
		events = lineage.Full(events)
	}
	var b bytes.Buffer
	topdown.PrettyTraceWithOpts(&b, events, topdown.PrettyTraceOptions{Locations: true, ExprVariables: d.Values})
	t.Trace = b.String()
}

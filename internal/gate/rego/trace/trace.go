// Package trace says what became of each rule of a policy on one input: it
// fired, or at which expression it stopped, down into the rules that the
// expression asks, with the values that were there.
//
// It evaluates once more, as strictly as a decision, but without the shortcuts
// that hide a rule: the index over rules, the early exit and the cache.
package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/lineage"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Rule is what became of one rule of the four sets.
type Rule struct {
	// Set is deny, escalate, approval or auto.
	Set    string `json:"set"`
	Reason string `json:"reason"`
	Title  string `json:"title"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Fired  bool   `json:"fired"`
	// Stopped is the first expression that was false or undefined; nil when the
	// rule fired or when Note says more.
	Stopped *Stop `json:"stopped,omitempty"`
	// Note is why there is neither: the rule was not evaluated, or not to its end.
	Note string `json:"note,omitempty"`
}

// Stop is an expression that was false or undefined.
type Stop struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Expression is the source, in one line.
	Expression string `json:"expression"`
	// Values are those of the input, the data and the variables in it.
	Values []Value `json:"values,omitempty"`
	// More counts the other values of its variables for which the rule stopped
	// there as well.
	More int `json:"more,omitempty"`
	// Helpers are the rules that the expression asks.
	Helpers []Helper `json:"helpers,omitempty"`
}

// Value is what a part of an expression was, as Rego writes it, or "undefined".
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Helper is a rule that an expression asks. One that gave a value was asked for
// another one, or for none; otherwise it stopped.
type Helper struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	Value string `json:"value,omitempty"`
	// Values are those of the input in a rule that gave a value.
	Values  []Value `json:"values,omitempty"`
	Stopped *Stop   `json:"stopped,omitempty"`
}

// Limits on one trace: a policy may go through everything.
const (
	maxFrames = 20_000
	maxEvents = 20_000
	// patience is how long one attempt may take.
	patience = 10 * time.Second
)

// errOver: more steps than are kept.
var errOver = errors.New("policy takes more steps than a trace holds")

// Of evaluates an input and says what became of each rule, set by set, strictest
// first, and in a set by file and line. An error means that there is no trace;
// a policy that fails on the input is none, the trace says where it did.
func Of(ctx context.Context, p *rego.Policy, input []byte) ([]Rule, error) {
	t, err := newTracing(p, input)
	if err != nil {
		return nil, err
	}
	// Without the cache each question is answered anew, so that its answer is seen.
	// That may be too much for a policy that asks one in a loop.
	for _, how := range []way{{}, {cache: true}} {
		rec, err := t.run(ctx, how)
		if errors.Is(err, errOver) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return t.rules(rec), nil
		}
		return t.failed(ctx, rec, err), nil
	}
	return nil, fmt.Errorf("%w, or longer than %s", errOver, patience)
}

// failed tells of an evaluation with an error. Where a decision has none, what
// failed is a rule that the index leaves out of it.
func (t *tracing) failed(ctx context.Context, rec *record, err error) []Rule {
	rec.failed = err
	out := t.rules(rec)
	again, err := t.run(ctx, way{cache: true, index: true})
	if err != nil {
		return out
	}
	for i, r := range t.rules(again) {
		if out[i].Note != "" {
			out[i] = r
		}
	}
	return out
}

// Full is OPA's own trace of an evaluation as a decision makes it, a line a
// step. An error of the policy is its last line.
func Full(ctx context.Context, p *rego.Policy, input []byte) (string, error) {
	t, err := newTracing(p, input)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var buf buffer
	_, failed := t.query.Eval(ctx, oparego.EvalParsedInput(t.input), oparego.EvalTime(t.now), oparego.EvalQueryTracer(&buf))
	var out bytes.Buffer
	topdown.PrettyTraceWithOpts(&out, lineage.Full(buf.BufferTracer), topdown.PrettyTraceOptions{Locations: true, ExprVariables: true})
	if buf.over {
		fmt.Fprintf(&out, "… there are more than %d steps\n", maxEvents)
	}
	if failed != nil {
		fmt.Fprintf(&out, "%v\n", failed)
	}
	return out.String(), nil
}

// buffer keeps the first events.
type buffer struct {
	topdown.BufferTracer
	over bool
}

// TraceEvent keeps one event. How terms are unified is of the engine's making:
// it would print whole documents.
func (b *buffer) TraceEvent(e topdown.Event) {
	if e.Op == topdown.UnifyOp {
		return
	}
	if len(b.BufferTracer) >= maxEvents {
		b.over = true
		return
	}
	b.BufferTracer.TraceEvent(e)
}

// tracing is one input before one policy.
type tracing struct {
	policy *rego.Policy
	built  rego.Built
	query  oparego.PreparedEvalQuery
	input  ast.Value
	now    time.Time
	owner  string
	// sets are the rules that decide, as they were compiled.
	sets []setRule
	// data is the data document, made when it is first asked for.
	data ast.Value
}

func newTracing(p *rego.Policy, input []byte) (*tracing, error) {
	if err := gate.ValidateInput(input); err != nil {
		return nil, err
	}
	var doc struct {
		Now     time.Time `json:"now"`
		Service struct {
			Owner string `json:"owner"`
		} `json:"service"`
	}
	if err := json.Unmarshal(input, &doc); err != nil {
		return nil, fmt.Errorf("gate input: %w", err)
	}
	value, err := ast.ValueFromReader(bytes.NewReader(input))
	if err != nil {
		return nil, fmt.Errorf("gate input: %w", err)
	}
	t := &tracing{policy: p, built: p.Built(), input: value, now: doc.Now, owner: doc.Service.Owner}
	t.sets = setRules(t.built.Compiler, p.Rules())
	t.query, err = oparego.New(
		oparego.Query(queryOf(t.sets)), oparego.Compiler(t.built.Compiler), oparego.Store(t.built.Store()),
		oparego.StrictBuiltinErrors(true), oparego.Strict(true), oparego.Capabilities(rego.Capabilities()),
	).PrepareForEval(context.Background())
	if err != nil {
		return nil, fmt.Errorf("prepare the trace: %w", err)
	}
	return t, nil
}

// way is how an evaluation is done.
type way struct{ cache, index bool }

// run evaluates once. The record holds what happened up to an error too.
func (t *tracing) run(ctx context.Context, how way) (rec *record, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, context.DeadlineExceeded)
	defer cancel()
	rec = newRecord(t.sets, cancel)
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("the engine failed: %v", caught)
		}
	}()
	options := []oparego.EvalOption{
		oparego.EvalParsedInput(t.input), oparego.EvalTime(t.now), oparego.EvalQueryTracer(rec),
		oparego.EvalRuleIndexing(how.index), oparego.EvalEarlyExit(false),
	}
	if !how.cache {
		options = append(options, oparego.EvalVirtualCache(noCache{}))
	}
	_, err = t.query.Eval(ctx, options...)
	switch {
	case rec.over:
		return rec, errOver
	case err != nil && ctx.Err() != nil:
		return rec, context.Cause(ctx)
	}
	return rec, err
}

// noCache forgets every answer.
type noCache struct{}

// Push does nothing.
func (noCache) Push() {}

// Pop does nothing.
func (noCache) Pop() {}

// Get finds nothing.
func (noCache) Get(ast.Ref) (*ast.Term, bool) { return nil, false }

// Put keeps nothing.
func (noCache) Put(ast.Ref, *ast.Term) {}

// Keys are none.
func (noCache) Keys() []ast.Ref { return nil }

// queryOf asks for the sets that there are, as a decision does.
func queryOf(rules []setRule) string {
	seen := map[string]bool{}
	var lines []string
	for _, r := range rules {
		ref := "data." + r.Package + "." + r.Set
		if r.team() {
			ref = "data.setpoint.team[input.service.owner]." + r.Set
		}
		if !seen[ref] {
			seen[ref] = true
			lines = append(lines, fmt.Sprintf("s%d := [x | some x in %s]", len(lines), ref))
		}
	}
	if len(lines) == 0 {
		return "true"
	}
	return strings.Join(lines, "; ")
}

package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// maskQuery is where OPA looks for what is to be masked.
const maskQuery = "data." + rego.MaskPackage + ".mask"

// maskDeadline bounds one look at what is to be masked.
const maskDeadline = time.Second

// masks are what one bundle says is to be masked.
type masks struct {
	revision string
	// query is nil where the bundle says nothing.
	query *oparego.PreparedEvalQuery
	fault error
	// warned: people were told of a fault.
	warned bool
}

// masksOf compiles the bundle's masks by themselves, so that nothing is shared
// with the decisions that are made meanwhile.
func masksOf(p Policy) (m masks) {
	m.revision = p.Revision()
	defer recovered(&m.fault)
	built := p.Built()
	if !speaks(built) {
		return m
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		m.fault = err
		return m
	}
	modules := map[string]*ast.Module{}
	for name, module := range built.Rules {
		modules[name] = module.Copy()
	}
	if compiler.Compile(modules); compiler.Failed() {
		m.fault = compiler.Errors
		return m
	}
	query, err := oparego.New(
		oparego.Query(maskQuery), oparego.Compiler(compiler), oparego.Store(built.Store()),
		oparego.StrictBuiltinErrors(true), oparego.Strict(true), oparego.Capabilities(rego.Capabilities()),
	).PrepareForEval(context.Background())
	m.query, m.fault = &query, err
	return m
}

// speaks reports whether rules or data have anything below data.system.
func speaks(built rego.Built) bool {
	root, _, _ := strings.Cut(rego.MaskPackage, ".")
	for _, module := range built.Rules {
		if path := module.Package.Path; len(path) > 1 && path[1].Value.Compare(ast.String(root)) == 0 {
			return true
		}
	}
	_, ok := built.Data[root]
	return ok
}

// of evaluates the masks of one event.
func (m *masks) of(ctx context.Context, e Event) (out []mask, err error) {
	if m.fault != nil || m.query == nil {
		return nil, m.fault
	}
	defer recovered(&err)
	event, err := generic(e)
	if err != nil {
		return nil, err
	}
	input, err := ast.InterfaceToValue(event)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maskDeadline)
	defer cancel()
	results, err := m.query.Eval(ctx, oparego.EvalParsedInput(input), oparego.EvalTime(e.Timestamp))
	if err != nil || len(results) == 0 {
		return nil, err // Undefined masks nothing, as with OPA.
	}
	elements, ok := results[0].Expressions[0].Value.([]any)
	if !ok {
		return nil, maskError("is no set")
	}
	for _, element := range elements {
		one, err := parseMask(element)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func recovered(err *error) {
	if caught := recover(); caught != nil {
		*err = maskError("panic")
	}
}

// maskError is a fault of what masks, in words that quote no value.
type maskError string

// Error gives the words.
func (e maskError) Error() string { return string(e) }

// words say what went wrong without quoting a value: a message of OPA may hold
// what was to be masked.
func words(err error) string {
	var at *topdown.Error
	var compile ast.Errors
	var own maskError
	switch {
	case errors.As(err, &at) && at.Location != nil:
		return fmt.Sprintf("%s: %s at %s:%d", maskQuery, at.Code, at.Location.File, at.Location.Row)
	case errors.As(err, &at):
		return maskQuery + ": " + at.Code
	case errors.As(err, &compile), errors.As(err, &own):
		return maskQuery + ": " + err.Error()
	}
	return maskQuery + " cannot be evaluated"
}

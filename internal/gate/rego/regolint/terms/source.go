// Package terms says what the terms of a policy stand for before anything is
// evaluated: which value of the input or of the data a variable holds, of which
// kind it may be, whether it may be missing or unknown, and what the conditions
// around it say of it. The lints look through it.
package terms

import (
	"errors"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Source is a bundle's rules with every name resolved, and what they are about.
type Source struct {
	// Rules are those of the rule files, by path and line.
	Rules []*ast.Rule
	// Tangled: not everything was looked at, because rules refer to each other in
	// too many ways.
	Tangled bool

	byName map[string][]*ast.Rule
	input  *Shape
	data   *Shape
	// values keeps what rules without arguments hold, learnt what a helper says
	// of its arguments when it is true.
	values map[string]Place
	learnt map[string]Knowledge
	// steps counts what was looked at.
	steps int
}

// maxDepth bounds how far values are followed through rules and functions, and
// maxSteps the work on one bundle.
const (
	maxDepth = 20
	maxSteps = 500_000
)

// Step reports whether there is patience for another step at this depth.
func (s *Source) Step(depth int) bool {
	s.steps++
	s.Tangled = s.Tangled || depth > maxDepth || s.steps > maxSteps
	return depth <= maxDepth && s.steps <= maxSteps
}

// New compiles the rules once more and takes a copy of them between two
// stages: names are resolved by then, and expressions are still those of the
// author.
func New(b rego.Built) (*Source, error) {
	s := &Source{byName: map[string][]*ast.Rule{}, data: ofData(b.Data), values: map[string]Place{}, learnt: map[string]Knowledge{}}
	var err error
	if s.input, err = inputShape(); err != nil {
		return nil, err
	}
	c, err := rego.NewCompiler()
	if err != nil {
		return nil, err
	}
	modules := map[string]*ast.Module{}
	c = c.WithStageAfterID(ast.StageRewriteLocalVars, ast.CompilerStageDefinition{
		Name: "Snapshot", MetricName: "snapshot", Stage: func(c *ast.Compiler) *ast.Error {
			for p, m := range c.Modules {
				modules[p] = m.Copy()
			}
			return nil
		},
	})
	if c.Compile(b.Rules); c.Failed() {
		return nil, rego.FindingsOf("", c.Errors)
	}
	for _, p := range slices.Sorted(maps.Keys(modules)) {
		if modules[p].Package.Path.String() == "data."+rego.MaskPackage {
			continue // Its input is another one, and it decides nothing.
		}
		for _, r := range modules[p].Rules {
			s.Rules = append(s.Rules, r)
			name := r.Ref().GroundPrefix().String()
			s.byName[name] = append(s.byName[name], r)
		}
	}
	if len(s.Rules) == 0 && len(b.Rules) > 0 && len(modules) == 0 {
		return nil, errors.New("the compiler has no stage " + string(ast.StageRewriteLocalVars))
	}
	return s, nil
}

// Find gives the rules that a reference is about, with the part of it that they
// define.
func (s *Source) Find(ref ast.Ref) (rules []*ast.Rule, name ast.Ref) {
	if !ref.HasPrefix(ast.DefaultRootRef) {
		return nil, nil
	}
	ground := ref.GroundPrefix()
	for n := len(ground); n > 1; n-- {
		if rules := s.byName[ground[:n].String()]; rules != nil {
			return rules, ground[:n]
		}
	}
	return nil, nil
}

// IsSet reports whether a rule adds to a set, or to an object.
func IsSet(r *ast.Rule) bool {
	return r.Head.RuleKind() == ast.MultiValue || len(r.Ref().GroundPrefix()) < len(r.Ref())
}

package regolint

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// source is a bundle's rules with every name resolved, and what they are about.
type source struct {
	// rules are those of the rule files, by path and line.
	rules  []*ast.Rule
	byName map[string][]*ast.Rule
	// names gives the author's names for the compiler's.
	names map[ast.Var]ast.Var
	input *shape
	data  *shape
	// values keeps what rules without arguments hold, learnt what a helper says
	// of its arguments when it is true.
	values map[string]place
	learnt map[string]knowledge
	// steps counts what was looked at; tangled: some of it was not, because rules
	// refer to each other in too many ways.
	steps   int
	tangled bool
}

// maxDepth bounds how far values are followed through rules and functions, and
// maxSteps the work on one bundle.
const (
	maxDepth = 20
	maxSteps = 500_000
)

// step reports whether there is patience for another step at this depth.
func (s *source) step(depth int) bool {
	s.steps++
	s.tangled = s.tangled || depth > maxDepth || s.steps > maxSteps
	return depth <= maxDepth && s.steps <= maxSteps
}

// newSource compiles the rules once more and takes a copy of them between two
// stages: names are resolved by then, and expressions are still those of the
// author.
func newSource(b rego.Built) (*source, error) {
	s := &source{byName: map[string][]*ast.Rule{}, data: ofData(b.Data), values: map[string]place{}, learnt: map[string]knowledge{}}
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
	s.names = maps.Clone(c.RewrittenVars)
	for _, p := range slices.Sorted(maps.Keys(modules)) {
		if modules[p].Package.Path.String() == "data."+rego.MaskPackage {
			continue // Its input is another one, and it decides nothing.
		}
		for _, r := range modules[p].Rules {
			s.rules = append(s.rules, r)
			name := r.Ref().GroundPrefix().String()
			s.byName[name] = append(s.byName[name], r)
		}
	}
	if len(s.rules) == 0 && len(b.Rules) > 0 && len(modules) == 0 {
		return nil, errors.New("the compiler has no stage " + string(ast.StageRewriteLocalVars))
	}
	return s, nil
}

// find gives the rules that a reference is about, with the part of it that they
// define.
func (s *source) find(ref ast.Ref) (rules []*ast.Rule, name ast.Ref) {
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

// decisionSet is the rule set that a name is, e.g. deny, or "".
func decisionSet(name ast.Ref) (set string, team bool) {
	if len(name) < 4 || !name.HasPrefix(setpointRef) {
		return "", false
	}
	last, ok := name[len(name)-1].Value.(ast.String)
	if !ok || !slices.Contains(sets, string(last)) {
		return "", false
	}
	switch {
	case len(name) == 4 && name[2].Value.Compare(ast.String("gate")) == 0:
		return string(last), false
	case len(name) == 5 && name[2].Value.Compare(ast.String("team")) == 0:
		return string(last), true
	}
	return "", false
}

var setpointRef = ast.MustParseRef("data.setpoint")

// grants are the rules of setpoint.gate that let an action run.
func (s *source) grants() []*ast.Rule {
	var out []*ast.Rule
	for _, r := range s.rules {
		if set, team := decisionSet(r.Ref()); !team && (set == "auto" || set == "approval") {
			out = append(out, r)
		}
	}
	return out
}

// text is an expression as its author wrote it, on one line.
func (s *source) text(at *ast.Location) string {
	const most = 120
	t := strings.Join(strings.Fields(string(at.Text)), " ")
	if len(t) > most {
		return t[:most] + "…"
	}
	return t
}

// headOf is where a rule stands, with its head for a text: a default and an else
// have no other that a person would know.
func headOf(r *ast.Rule) *ast.Location {
	at := *r.Location
	text := r.Head.String()
	if r.Default {
		text = "default " + text
	}
	at.Text = []byte(text)
	return &at
}

// isSet reports whether a rule adds to a set, or to an object.
func isSet(r *ast.Rule) bool {
	return r.Head.RuleKind() == ast.MultiValue || len(r.Ref().GroundPrefix()) < len(r.Ref())
}

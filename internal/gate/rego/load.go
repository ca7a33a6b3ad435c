package rego

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	oparego "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// DefaultDeadline bounds one evaluation.
const DefaultDeadline = time.Second

// Options change how a policy is evaluated.
type Options struct {
	// Deadline bounds one evaluation; DefaultDeadline when zero.
	Deadline time.Duration
}

// Policy is one loaded bundle. It never changes and is safe for concurrent use.
type Policy struct {
	bundle   Bundle
	built    Built
	deadline time.Duration
	query    oparego.PreparedEvalQuery
	// sets are the rule sets that the query asks for, in its order.
	sets  []ruleSet
	rules map[string]knownRule
}

// Load reads a bundle root whole and loads it; see Bundle.Load.
func Load(fsys fs.FS, o Options) (*Policy, error) {
	b, err := Read(fsys)
	if err != nil {
		return nil, err
	}
	return b.Load(o)
}

// Load checks and compiles the bundle strictly and prepares its query. It gives
// a Policy or an error with everything that is wrong, and never half a policy.
// The bundle's own tests are compiled with it; package regotest runs them.
func (b Bundle) Load(o Options) (*Policy, error) {
	built, findings := b.Build()
	if bad := findings.Errors(); len(bad) > 0 {
		return nil, fmt.Errorf("policy is not loaded: %w", bad)
	}
	p := &Policy{bundle: b, built: built, deadline: o.Deadline, sets: built.sets, rules: built.rules}
	if p.deadline <= 0 {
		p.deadline = DefaultDeadline
	}
	var err error
	p.query, err = oparego.New(
		oparego.Query(queryOf(p.sets)), oparego.Compiler(built.Compiler), oparego.Store(built.Store()),
		oparego.StrictBuiltinErrors(true), oparego.Strict(true), oparego.Capabilities(Capabilities()),
	).PrepareForEval(context.Background())
	if err != nil {
		return nil, fmt.Errorf("policy is not loaded: prepare its query: %w", err)
	}
	return p, nil
}

// Bundle is what was loaded.
func (p *Policy) Bundle() Bundle { return p.bundle }

// Built is what it was compiled to.
func (p *Policy) Built() Built { return p.built }

// Revision is the bundle's.
func (p *Policy) Revision() string { return p.bundle.revision }

// DataDigest is the bundle's.
func (p *Policy) DataDigest() string { return p.bundle.data }

// Pack is the bundle's.
func (p *Policy) Pack() []byte { return p.bundle.Pack() }

// Rules are all rules of the bundle, by reason.
func (p *Policy) Rules() []gate.Rule {
	out := make([]gate.Rule, 0, len(p.rules))
	for _, r := range p.rules {
		out = append(out, r.Rule)
	}
	slices.SortFunc(out, func(a, b gate.Rule) int { return strings.Compare(a.Reason, b.Reason) })
	return out
}

// Built is a bundle that was parsed and compiled. What it holds is not to be
// changed.
type Built struct {
	// Rules and Tests are the parsed modules by path; tests are never evaluated
	// in a decision.
	Rules, Tests map[string]*ast.Module
	// Compiler holds the compiled rules without the tests.
	Compiler *ast.Compiler
	// Data is the merged data document.
	Data map[string]any

	sets  []ruleSet
	rules map[string]knownRule
}

// Store is a store of the data, in OPA's own values: the fastest to read.
func (b Built) Store() storage.Store {
	return inmem.NewFromObjectWithOpts(b.Data, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
}

// Reasons are the rules of the four sets, by reason.
func (b Built) Reasons() map[string]gate.Rule {
	out := make(map[string]gate.Rule, len(b.rules))
	for reason, r := range b.rules {
		out[reason] = r.Rule
	}
	return out
}

// Union is rules and tests together, copied: a compiler changes its modules.
func (b Built) Union() map[string]*ast.Module { return union(b.Rules, b.Tests) }

// Build parses, checks and compiles a bundle. Findings hold everything that is
// wrong; with one that is an error the rest is not to be used.
func (b Bundle) Build() (Built, Findings) {
	out, findings := b.build()
	if len(findings.Errors()) > 0 {
		_, bad := parse(b.pick(isTest))
		return out, append(findings, bad...).Sorted()
	}
	return out, append(findings, out.compileTests(b)...).Sorted()
}

// build does what a decision needs, without the tests, so that nothing in them
// can be evaluated.
func (b Bundle) build() (Built, Findings) {
	modules, findings := parse(b.pick(isRule))
	data, bad := readData(b.pick(isData))
	findings = append(findings, bad...)
	for _, p := range b.ignored {
		findings = append(findings, Finding{File: p, Code: CodeIgnored, Text: "a bundle loads only data.json, data.yaml and data.yml", Severity: SeverityWarning})
	}
	if len(modules) == 0 && len(findings.Errors()) == 0 {
		findings = append(findings, Finding{Code: CodeRead, Text: "no .rego file: without policy everything is denied"})
	}
	x := inspect(modules)
	findings = append(findings, x.findings...)
	copied := union(modules, nil)
	compiler, bad := compile(modules)
	findings = append(findings, bad...)
	if len(bad) == 0 {
		findings = append(findings, danglingData(compiler, data)...)
	}
	return Built{Rules: copied, Compiler: compiler, Data: data, sets: x.sets, rules: x.rules}, findings
}

// compileTests compiles the bundle once more with its tests: one that was
// written to half is half a bundle.
func (b *Built) compileTests(of Bundle) Findings {
	var bad Findings
	if b.Tests, bad = parse(of.pick(isTest)); len(bad) > 0 || len(b.Tests) == 0 {
		return bad
	}
	_, bad = compile(b.Union())
	return bad
}

func union(a, b map[string]*ast.Module) map[string]*ast.Module {
	out := make(map[string]*ast.Module, len(a)+len(b))
	for _, m := range []map[string]*ast.Module{a, b} {
		for p, mod := range m {
			out[p] = mod.Copy()
		}
	}
	return out
}

func parse(files []File) (map[string]*ast.Module, Findings) {
	modules := map[string]*ast.Module{}
	var fs Findings
	for _, f := range files {
		m, err := ast.ParseModuleWithOpts(f.Path, string(f.Data), ast.ParserOptions{
			RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: Capabilities(),
		})
		switch {
		case err != nil:
			fs = append(fs, FindingsOf(f.Path, err)...)
		case m != nil:
			modules[f.Path] = m
		}
	}
	typeInputs(modules)
	return modules, fs
}

// NewCompiler compiles strictly and against the schema of the input, so that a
// misspelt input path is an error and not undefined.
func NewCompiler() (*ast.Compiler, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	schemas.Put(eventSchemaRef, eventSchema(schema))
	return ast.NewCompiler().WithStrict(true).WithCapabilities(Capabilities()).WithSchemas(schemas).
		WithUseTypeCheckAnnotations(true).WithDefaultRegoVersion(ast.RegoV1), nil
}

func compile(modules map[string]*ast.Module) (*ast.Compiler, Findings) {
	c, err := NewCompiler()
	if err != nil {
		return nil, Findings{{Code: CodeCompile, Text: err.Error()}}
	}
	if c.Compile(modules); c.Failed() {
		return nil, FindingsOf("", c.Errors)
	}
	return c, nil
}

// FindingsOf are the findings in an error of OPA about a file ("" where the
// error knows it), sorted.
func FindingsOf(file string, err error) Findings {
	var many ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one): // An empty file gives one by itself.
		many = ast.Errors{one}
	default:
		return Findings{{File: file, Code: CodeCompile, Text: err.Error()}}
	}
	var fs Findings
	for _, e := range many {
		f := Finding{File: file}
		f.Code, f.Text = explained(e)
		if e.Location != nil {
			f.File, f.Line = e.Location.File, e.Location.Row
		}
		fs = append(fs, f)
	}
	return fs.Sorted()
}

// queryOf asks for each set that exists. A team's set is asked for the owner of
// the service alone.
func queryOf(sets []ruleSet) string {
	lines := make([]string, 0, len(sets)+1)
	for i, s := range sets {
		if s.team {
			lines = append(lines, fmt.Sprintf("s%d := [x | some x in data.setpoint.team[input.service.owner].%s]", i, s.name))
			continue
		}
		lines = append(lines, fmt.Sprintf("s%d := data.setpoint.gate.%s", i, s.name))
	}
	if len(lines) == 0 {
		return "true"
	}
	return strings.Join(lines, "; ")
}

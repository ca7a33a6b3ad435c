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
	snap     snapshot
	deadline time.Duration
	query    oparego.PreparedEvalQuery
	// sets are the rule sets that the query asks for, in its order.
	sets  []ruleSet
	rules map[string]gate.Rule
}

// Load reads a bundle root whole, checks and compiles it strictly, and prepares
// its query. It gives a Policy or an error with everything that is wrong, and
// never half a policy. The bundle's own tests are compiled with it and are run
// by RunTests.
func Load(fsys fs.FS, o Options) (*Policy, error) {
	snap, err := readSnapshot(fsys)
	if err != nil {
		return nil, err
	}
	b, findings := build(snap)
	findings = append(findings, compileTests(snap, findings)...)
	if bad := findings.errors(); len(bad) > 0 {
		return nil, fmt.Errorf("policy is not loaded: %w", bad.sorted())
	}
	p := &Policy{snap: snap, deadline: o.Deadline, sets: b.sets, rules: b.rules}
	if p.deadline <= 0 {
		p.deadline = DefaultDeadline
	}
	store := inmem.NewFromObjectWithOpts(b.data, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
	p.query, err = oparego.New(
		oparego.Query(queryOf(b.sets)), oparego.Compiler(b.compiler), oparego.Store(store),
		oparego.StrictBuiltinErrors(true), oparego.Strict(true), oparego.Capabilities(Capabilities()),
	).PrepareForEval(context.Background())
	if err != nil {
		return nil, fmt.Errorf("policy is not loaded: prepare its query: %w", err)
	}
	return p, nil
}

// Revision is the SHA-256 (hex) over path and content of the bundle's Rego and
// data files.
func (p *Policy) Revision() string { return p.snap.revision }

// Files are the bundle as it was read, by path, for the ledger.
func (p *Policy) Files() []File {
	out := make([]File, len(p.snap.files))
	for i, f := range p.snap.files {
		out[i] = File{f.Path, slices.Clone(f.Data)}
	}
	return out
}

// Rules are all rules of the bundle, by reason.
func (p *Policy) Rules() []gate.Rule {
	out := make([]gate.Rule, 0, len(p.rules))
	for _, r := range p.rules {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b gate.Rule) int { return strings.Compare(a.Reason, b.Reason) })
	return out
}

// built is a bundle that was parsed and compiled.
type built struct {
	compiler *ast.Compiler
	data     map[string]any
	sets     []ruleSet
	rules    map[string]gate.Rule
}

// build parses, checks and compiles what a decision needs, without the tests,
// so that nothing in them can be evaluated.
func build(snap snapshot) (built, Findings) {
	modules, findings := parse(snap.pick(isRule))
	data, bad := readData(snap.pick(isData))
	findings = append(findings, bad...)
	for _, p := range snap.ignored {
		findings = append(findings, Finding{File: p, Code: CodeIgnored, Text: "a bundle loads only data.json, data.yaml and data.yml", Warning: true})
	}
	if len(modules) == 0 && len(findings.errors()) == 0 {
		findings = append(findings, Finding{Code: CodeRead, Text: "no .rego file: without policy everything is denied"})
	}
	x := inspect(modules)
	findings = append(findings, x.findings...)
	compiler, bad := compile(modules)
	findings = append(findings, bad...)
	if len(bad) == 0 {
		findings = append(findings, danglingData(compiler, data)...)
	}
	return built{compiler, data, x.sets, x.rules}, findings
}

// compileTests compiles the bundle once more with its tests: one that was
// written to half is half a bundle.
func compileTests(snap snapshot, before Findings) Findings {
	tests, bad := parse(snap.pick(isTest))
	if len(bad) > 0 || len(before.errors()) > 0 || len(tests) == 0 {
		return bad
	}
	rules, _ := parse(snap.pick(isRule))
	_, bad = compile(union(rules, tests))
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
			fs = append(fs, compileFindings(f.Path, err)...)
		case m != nil:
			modules[f.Path] = m
		}
	}
	return modules, fs
}

// newCompiler compiles strictly and against the schema of the input, so that a
// misspelt input path is an error and not undefined.
func newCompiler() (*ast.Compiler, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	var schema any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	return ast.NewCompiler().WithStrict(true).WithCapabilities(Capabilities()).WithSchemas(schemas).
		WithDefaultRegoVersion(ast.RegoV1), nil
}

func compile(modules map[string]*ast.Module) (*ast.Compiler, Findings) {
	c, err := newCompiler()
	if err != nil {
		return nil, Findings{{Code: CodeCompile, Text: err.Error()}}
	}
	if c.Compile(modules); c.Failed() {
		return nil, compileFindings("", c.Errors)
	}
	return c, nil
}

func compileFindings(file string, err error) Findings {
	var many ast.Errors
	if !errors.As(err, &many) {
		return Findings{{File: file, Code: CodeCompile, Text: err.Error()}}
	}
	var fs Findings
	for _, e := range many {
		f := Finding{File: file, Code: CodeCompile, Text: e.Message}
		if e.Location != nil {
			f.File, f.Line = e.Location.File, e.Location.Row
		}
		var bad *ast.RefErrInvalidDetail
		if d, ok := e.Details.(*ast.RefErrInvalidDetail); ok {
			bad = d
		}
		if bad != nil && bad.Ref.HasPrefix(ast.InputRootRef) {
			f.Code = CodeInput
			f.Text = fmt.Sprintf("%s is not in the gate input%s", bad.Ref, suggestion(bad))
		}
		fs = append(fs, f)
	}
	return fs
}

// suggestion names the nearest field at the place that is wrong.
func suggestion(d *ast.RefErrInvalidDetail) string {
	if d.Pos < 0 || d.Pos >= len(d.Ref) {
		return ""
	}
	have, ok := d.Ref[d.Pos].Value.(ast.String)
	if !ok {
		return ""
	}
	var names []string
	for _, v := range d.OneOf {
		if s, ok := v.(ast.String); ok {
			names = append(names, string(s))
		}
	}
	slices.Sort(names)
	if best := nearest(string(have), names, 3); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	if len(names) > 0 {
		return "; there are " + strings.Join(names, ", ")
	}
	return ""
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
		lines = append(lines, fmt.Sprintf("s%d := [x | some x in data.setpoint.gate.%s]", i, s.name))
	}
	if len(lines) == 0 {
		return "true"
	}
	return strings.Join(lines, "; ")
}

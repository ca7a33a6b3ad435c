package rego

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// danglingData are references into data that neither a rule nor a data file
// defines. They are undefined, and a negation over them is true: the same trap
// as a misspelt input path.
func danglingData(c *ast.Compiler, data map[string]any) Findings {
	defined := ruleRefs(c)
	var fs Findings
	for _, p := range slices.Sorted(maps.Keys(c.Modules)) {
		ast.WalkRefs(c.Modules[p], func(r ast.Ref) bool {
			if !r.HasPrefix(ast.DefaultRootRef) || len(r) < 2 {
				return false
			}
			g := r.GroundPrefix()
			if len(g) < 2 || inData(g[1:], data) || slices.ContainsFunc(defined, func(d ast.Ref) bool { return g.HasPrefix(d) || d.HasPrefix(g) }) {
				return false
			}
			f := Finding{File: p, Code: CodeData, Text: g.String() + " is defined by no rule and no data file, so it is undefined for ever"}
			if loc := r[0].Location; loc != nil {
				f.File, f.Line = loc.File, loc.Row
			}
			fs = append(fs, f)
			return false
		})
	}
	return fs
}

func ruleRefs(c *ast.Compiler) []ast.Ref {
	var out []ast.Ref
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			out = append(out, r.Ref().GroundPrefix())
		}
		// A package without rules is defined too, though empty.
		out = append(out, m.Package.Path)
	}
	return out
}

// inData reports whether the path leads somewhere in the data files.
func inData(path ast.Ref, v any) bool {
	for _, t := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return true // inside a list or a value: not for us to say
		}
		name, ok := t.Value.(ast.String)
		if !ok {
			return true
		}
		next, found := o[string(name)]
		if !found {
			return false
		}
		v = next
	}
	return true
}

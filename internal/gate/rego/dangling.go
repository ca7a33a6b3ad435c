package rego

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// danglingData are references into data that neither a rule nor a data file
// defines. They are undefined, and a negation over them is true: the same trap
// as a misspelt input path. Without data, which was not readable then, nobody can
// tell.
func danglingData(c *ast.Compiler, data map[string]any) Findings {
	if data == nil {
		return nil
	}
	rules, packages := definedRefs(c)
	var fs Findings
	for _, p := range slices.Sorted(maps.Keys(c.Modules)) {
		ast.WalkRefs(c.Modules[p], func(r ast.Ref) bool {
			if !r.HasPrefix(ast.DefaultRootRef) || len(r) < 2 {
				return false
			}
			g := r.GroundPrefix()
			of := func(d ast.Ref) bool { return g.HasPrefix(d) || d.HasPrefix(g) }
			// A package as a whole is an object, though an empty one.
			whole := func(d ast.Ref) bool { return d.HasPrefix(g) }
			if len(g) < 2 || inData(g[1:], data) || slices.ContainsFunc(rules, of) || slices.ContainsFunc(packages, whole) {
				return false
			}
			f := Finding{File: p, Code: CodeData, Text: g.String() + " is defined by no rule and no data file, so it is undefined for ever" + meant(g, rules)}
			if loc := r[0].Location; loc != nil {
				f.File, f.Line = loc.File, loc.Row
			}
			fs = append(fs, f)
			return false
		})
	}
	return fs
}

// meant names the rule that is nearest to a reference.
func meant(g ast.Ref, rules []ast.Ref) string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.String()
	}
	if best := Nearest(g.String(), names, 2); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

func definedRefs(c *ast.Compiler) (rules, packages []ast.Ref) {
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			rules = append(rules, r.Ref().GroundPrefix())
		}
		packages = append(packages, m.Package.Path)
	}
	return rules, packages
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

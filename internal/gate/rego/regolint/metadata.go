package regolint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// lintMetadata wants words with every rule that decides: a verdict shows its
// title, explains itself by its description, and says by its remedy what a
// person can do.
func lintMetadata(s *terms.Source) rego.Findings {
	var out rego.Findings
	for _, r := range s.Rules {
		if set, _ := decisionSet(r.Ref()); set == "" {
			continue
		}
		missing := missingWords(r.Annotations)
		switch {
		case len(r.Annotations) == 0:
			out = append(out, at(r.Location, CodeMetadata, rego.SeverityLint,
				fmt.Sprintf("rule %q has no METADATA right above it; a verdict needs %s", reasonOf(r), list(missing))))
		case len(missing) > 0:
			out = append(out, at(r.Location, CodeMetadata, rego.SeverityLint,
				fmt.Sprintf("METADATA of rule %q lacks %s", reasonOf(r), list(missing))))
		}
	}
	return out
}

func missingWords(notes []*ast.Annotations) []string {
	have := map[string]bool{}
	for _, n := range notes {
		remedy, _ := n.Custom["remedy"].(string)
		for name, text := range map[string]string{"title": n.Title, "description": n.Description, "custom.remedy": remedy} {
			have[name] = have[name] || strings.TrimSpace(text) != ""
		}
	}
	return slices.DeleteFunc([]string{"title", "description", "custom.remedy"}, func(name string) bool { return have[name] })
}

func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// reasonOf is the literal that a rule adds to its set.
func reasonOf(r *ast.Rule) string {
	if r.Head.Key == nil {
		return r.Head.Name.String()
	}
	switch v := r.Head.Key.Value.(type) {
	case ast.String:
		return string(v)
	case ast.Object:
		if reason := v.Get(ast.StringTerm("reason")); reason != nil {
			if s, ok := reason.Value.(ast.String); ok {
				return string(s)
			}
		}
	}
	return r.Head.Key.String()
}

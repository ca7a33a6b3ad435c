package regolint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// lintUnread finds sets of the packages that decide which no rule reads: a
// reason in a set that is named denied or block is heard by nobody, and reads as
// if it were.
func lintUnread(built rego.Built) rego.Findings {
	read := map[string]bool{}
	for _, m := range built.Compiler.Modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			read[r.GroundPrefix().String()] = true
			return false
		})
	}
	var out rego.Findings
	for _, path := range slices.Sorted(maps.Keys(built.Compiler.Modules)) {
		m := built.Compiler.Modules[path]
		if set, _ := decisionSet(m.Package.Path.Append(ast.StringTerm("deny"))); set == "" {
			continue
		}
		for _, r := range m.Rules {
			set, _ := decisionSet(r.Ref())
			if set != "" || r.Head.RuleKind() != ast.MultiValue || readAnywhere(r.Ref().GroundPrefix(), read) {
				continue
			}
			out = append(out, at(r.Location, rego.CodeRule, rego.SeverityLint,
				fmt.Sprintf("set %s is read by no rule; what counts is auto, approval, escalate and deny", r.Head.Name)))
		}
	}
	return out
}

// readAnywhere reports whether something refers to the set itself or to one of
// its elements.
func readAnywhere(set ast.Ref, read map[string]bool) bool {
	if read[set.String()] {
		return true
	}
	for ref := range read {
		if len(ref) > len(set.String()) && ref[:len(set.String())] == set.String() {
			return true
		}
	}
	return false
}

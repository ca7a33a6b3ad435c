package rego

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// setNames are the four rule sets, strictest first.
var setNames = []string{"deny", "escalate", "approval", "auto"}

// ruleSet is one set that some rule adds to: of setpoint.gate, or of any team.
type ruleSet struct {
	name string
	team bool
}

// reasonPattern is what a stable code looks like; it becomes a metric label.
var reasonPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

const maxReason = 64

// knownRule is a rule with the set that it adds to.
type knownRule struct {
	gate.Rule
	set ruleSet
}

// inspection is what the source itself says, before it is compiled: the
// compiler would replace what rules add by variables.
type inspection struct {
	findings Findings
	sets     []ruleSet
	rules    map[string]knownRule
}

func inspect(modules map[string]*ast.Module) inspection {
	x := inspection{rules: map[string]knownRule{}}
	seen := map[ruleSet]bool{}
	for _, p := range slices.Sorted(maps.Keys(modules)) {
		x.inspectModule(modules[p], seen)
	}
	for _, team := range []bool{false, true} {
		for _, n := range setNames {
			if seen[ruleSet{n, team}] {
				x.sets = append(x.sets, ruleSet{n, team})
			}
		}
	}
	if len(modules) > 0 && !seen[ruleSet{"auto", false}] && !seen[ruleSet{"approval", false}] {
		x.findings = append(x.findings, Finding{Code: CodeRule, Text: "no rule of package setpoint.gate grants anything: every action would be denied", Severity: SeverityWarning})
	}
	return x
}

func (x *inspection) inspectModule(m *ast.Module, seen map[ruleSet]bool) {
	pkg, team, decides := x.packageOf(m)
	if !decides {
		return
	}
	for _, r := range m.Rules {
		name := headName(r)
		if !slices.Contains(setNames, name) {
			x.checkOther(r, name)
			continue
		}
		if x.checkSet(r, name, team) {
			x.add(r, name, pkg)
			seen[ruleSet{name, team}] = true
		}
	}
}

func (x *inspection) fail(at *ast.Location, code, text string, args ...any) {
	f := Finding{Code: code, Text: fmt.Sprintf(text, args...)}
	if at != nil {
		f.File, f.Line = at.File, at.Row
	}
	x.findings = append(x.findings, f)
}

// packageOf says whether the module's rules decide. Packages below setpoint
// are few, so that a misspelt one is no library that nobody reads.
func (x *inspection) packageOf(m *ast.Module) (pkg string, team, decides bool) {
	var parts []string
	for _, t := range m.Package.Path[1:] {
		s, ok := t.Value.(ast.String)
		if !ok {
			return "", false, false
		}
		parts = append(parts, string(s))
	}
	pkg = strings.Join(parts, ".")
	switch {
	case len(parts) == 0 || parts[0] != "setpoint":
		return pkg, false, false
	case pkg == "setpoint.gate":
		return pkg, false, true
	case len(parts) == 3 && parts[1] == "team":
		return pkg, true, true
	case len(parts) >= 2 && parts[1] == "lib":
		return pkg, false, false
	}
	x.fail(m.Package.Location, CodePackage, "package %s is read by nobody; want setpoint.gate, setpoint.team.<owner> or setpoint.lib.<name>", pkg)
	return pkg, false, false
}

// headName is the first name of a rule's head, e.g. auto of auto["x"].
func headName(r *ast.Rule) string {
	if ref := r.Head.Ref(); len(ref) > 0 {
		if v, ok := ref[0].Value.(ast.Var); ok {
			return string(v)
		}
	}
	return string(r.Head.Name)
}

// checkOther looks at rules that are no rule set: those that look as if they
// decided would be trusted and do nothing.
func (x *inspection) checkOther(r *ast.Rule, name string) {
	switch {
	case slices.Contains([]string{"allow", "verdict", "decision", "result"}, name):
		x.fail(r.Location, CodeRule, "rule %s decides nothing; add a reason to auto, approval, escalate or deny", name)
	case r.Head.RuleKind() == ast.MultiValue && len(r.Head.Ref()) == 1:
		if best := Nearest(name, setNames, 2); best != "" {
			x.fail(r.Location, CodeRule, "set %s is read by nobody; did you mean %s?", name, best)
		}
	}
}

// checkSet reports whether the rule adds one reason to a set that counts.
func (x *inspection) checkSet(r *ast.Rule, name string, team bool) bool {
	switch {
	case r.Default || len(r.Head.Ref()) != 1 || r.Head.RuleKind() != ast.MultiValue || len(r.Head.Args) > 0:
		x.fail(r.Location, CodeRule, "%s is a set: write %s contains \"<reason>\" if { … }", name, name)
		return false
	case r.Else != nil:
		x.fail(r.Location, CodeRule, "%s cannot have else", name)
		return false
	case team && name == "auto":
		x.fail(r.Location, CodeRule, "only package setpoint.gate grants: a team may deny, escalate or ask for approval")
		return false
	}
	return true
}

// add records the reason that a rule adds, with where it stands.
func (x *inspection) add(r *ast.Rule, set, pkg string) {
	reason, ok := x.reasonOf(r, set)
	if !ok {
		return
	}
	at := r.Location
	if old, twice := x.rules[reason]; twice {
		x.fail(at, CodeReason, "reason %q is taken by %s:%d; a reason names one rule of the bundle", reason, old.File, old.Line)
		return
	}
	title, remedy := annotation(r)
	x.rules[reason] = knownRule{
		Rule: gate.Rule{Reason: reason, Package: pkg, Title: title, Remedy: remedy, File: at.File, Line: at.Row},
		set:  ruleSet{set, strings.HasPrefix(pkg, "setpoint.team.")},
	}
}

// reasonOf is the literal that the rule adds.
func (x *inspection) reasonOf(r *ast.Rule, set string) (string, bool) {
	switch v := r.Head.Key.Value.(type) {
	case ast.String:
		return x.validReason(r, string(v))
	case ast.Object:
		if set != "approval" {
			x.fail(r.Location, CodeReason, "%s takes reasons alone; only approval takes an object", set)
			return "", false
		}
		return x.reasonOfObject(r, v)
	}
	x.fail(r.Location, CodeReason, "what %s contains must be a literal reason, so that a verdict names this rule", set)
	return "", false
}

func (x *inspection) reasonOfObject(r *ast.Rule, o ast.Object) (string, bool) {
	reason := ""
	for _, k := range o.Keys() {
		name, ok := k.Value.(ast.String)
		if !ok || !slices.Contains(approvalKeys, string(name)) {
			x.fail(r.Location, CodeReason, "approval takes %s, not %s", strings.Join(approvalKeys, ", "), k)
			return "", false
		}
		if s, isText := o.Get(k).Value.(ast.String); isText && name == "reason" {
			reason = string(s)
		}
	}
	if reason == "" {
		x.fail(r.Location, CodeReason, "the object of approval needs a literal reason")
		return "", false
	}
	if ast.IsConstant(o) {
		v, err := ast.JSON(o)
		if err == nil {
			_, err = decodeApproval(v)
		}
		if err != nil {
			x.fail(r.Location, CodeReason, "approval %q: %v", reason, err)
			return "", false
		}
	}
	return x.validReason(r, reason)
}

func (x *inspection) validReason(r *ast.Rule, reason string) (string, bool) {
	if len(reason) > maxReason || !reasonPattern.MatchString(reason) {
		x.fail(r.Location, CodeReason, "reason %.80q is no stable code: lower case words joined by -, at most %d characters", reason, maxReason)
		return "", false
	}
	return reason, true
}

func annotation(r *ast.Rule) (title, remedy string) {
	for _, a := range r.Annotations {
		if title == "" {
			title = a.Title
		}
		if s, ok := a.Custom["remedy"].(string); ok && remedy == "" {
			remedy = s
		}
	}
	return title, remedy
}

package regolint

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
)

// sets are the four rule sets.
var sets = []string{"deny", "escalate", "approval", "auto"}

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
func grants(s *terms.Source) []*ast.Rule {
	var out []*ast.Rule
	for _, r := range s.Rules {
		if set, team := decisionSet(r.Ref()); !team && (set == "auto" || set == "approval") {
			out = append(out, r)
		}
	}
	return out
}

// text is an expression as its author wrote it, on one line.
func text(at *ast.Location) string {
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

package rego

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// explained are the words for what OPA says of a rule: what is misspelt gets the
// nearest name, and what does not fit gets its types.
func explained(e *ast.Error) (code, text string) {
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		if d.Ref.HasPrefix(ast.InputRootRef) {
			return CodeInput, fmt.Sprintf("%s is not in the gate input%s", d.Ref, suggestion(d))
		}
		return CodeCompile, fmt.Sprintf("%s is not there%s", d.Ref, suggestion(d))
	case *ast.RefErrUnsupportedDetail:
		return CodeInput, fmt.Sprintf("%s is not there: %s holds %s, which has no fields", d.Ref, d.Ref[:d.Pos+1], clip(d.Have))
	case *ast.UnificationErrDetail:
		return CodeCompile, fmt.Sprintf("%s: %s never equals %s", e.Message, clip(d.Left), clip(d.Right))
	case *ast.ArgErrDetail:
		return CodeCompile, fmt.Sprintf("%s: has (%s), wants (%s)", e.Message, arguments(d.Have), arguments(d.Want.Args))
	}
	if m := unsafeVar.FindStringSubmatch(e.Message); m != nil {
		text := e.Message + ": nothing of that name is defined"
		if best := Nearest(m[1], []string{"input", "data"}, 2); best != "" {
			text += fmt.Sprintf("; did you mean %s?", best)
		}
		return CodeCompile, text
	}
	return CodeCompile, e.Message
}

var unsafeVar = regexp.MustCompile(`^var (\w+) is unsafe$`)

// arguments are types as words. What OPA does not know is the result.
func arguments(ts []types.Type) string {
	var words []string
	for _, t := range ts {
		if t != nil {
			words = append(words, clip(t))
		}
	}
	return strings.Join(words, ", ")
}

// clip keeps the type of a whole document from filling the screen.
func clip(t types.Type) string {
	const most = 100
	s := types.Sprint(t)
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// suggestion names the nearest field at the place that is wrong.
func suggestion(d *ast.RefErrInvalidDetail) string {
	if d.Pos < 0 || d.Pos >= len(d.Ref) {
		return ""
	}
	have, ok := d.Ref[d.Pos].Value.(ast.String)
	switch {
	case d.Have != nil && d.Want != nil:
		return fmt.Sprintf(": %s is %s, want %s", d.Ref[d.Pos], clip(d.Have), clip(d.Want))
	case !ok:
		return ""
	}
	var names []string
	for _, v := range d.OneOf {
		if s, ok := v.(ast.String); ok {
			names = append(names, string(s))
		}
	}
	return Suggest(string(have), names)
}

// Suggest is the end of a finding about a name that is none of names: "; did you
// mean x?", or what there is, or nothing.
func Suggest(have string, names []string) string {
	slices.Sort(names)
	if best := Nearest(have, names, 3); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	if len(names) > 0 {
		return "; there are " + strings.Join(names, ", ")
	}
	return ""
}

// Nearest is the name within limit edits of have that is closest, or "".
func Nearest(have string, names []string, limit int) string {
	best, at := "", limit+1
	for _, n := range names {
		if d := distance(have, n); d < at && d < max(len(have), len(n)) {
			best, at = n, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

package shipped_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/policies"
)

// block is one fenced block of the page for authors.
type block struct {
	// heading is the nearest above it, of any depth.
	heading, language, text string
	line                    int
}

func readme(t testing.TB) string {
	t.Helper()
	return string(files(t, policies.FS)["README.md"].Data)
}

// blocks are the fenced blocks of the page, those in lists included.
func blocks(t testing.TB) []block {
	t.Helper()
	var out []block
	var heading, indent string
	open := -1
	for i, line := range strings.Split(readme(t), "\n") {
		bare := strings.TrimLeft(line, " ")
		switch {
		case open < 0 && strings.HasPrefix(bare, "```"):
			indent = line[:len(line)-len(bare)]
			open = len(out)
			out = append(out, block{heading: heading, language: strings.TrimPrefix(bare, "```"), line: i + 1})
		case open < 0 && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case bare == "```":
			open = -1
		case open >= 0:
			out[open].text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open >= 0 || len(out) < 25 {
		t.Fatalf("%d blocks, the last one closed: %v", len(out), open < 0)
	}
	return out
}

// under are the blocks below a heading.
func under(t testing.TB, heading, language string) []block {
	t.Helper()
	return slices.DeleteFunc(blocks(t), func(b block) bool { return b.heading != heading || b.language != language })
}

// What authors are shown is an input that the gate takes, and the one that
// tests and tables start from.
func TestReadmeInput(t *testing.T) {
	shown := under(t, "The input", "json")
	if len(shown) != 1 {
		t.Fatalf("%d examples of the input, want 1", len(shown))
	}
	if err := gate.ValidateInput([]byte(shown[0].text)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(string(gate.ExampleInput()), shown[0].text); diff != "" {
		t.Errorf("(-example +page):\n%s", diff)
	}
}

// The table names every field that there is, in the row of its parent.
func TestReadmeNamesEachField(t *testing.T) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(readme(t), "| field | holds |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for row := range strings.Lines(table) {
		rows = append(rows, row)
	}
	paths := fields(schema, "")
	for _, path := range paths {
		top, _, _ := strings.Cut(path, ".")
		name := path[strings.LastIndex(path, ".")+1:]
		if !slices.ContainsFunc(rows, func(row string) bool {
			about := path == top || strings.HasPrefix(row, "| `"+top)
			return about && (strings.Contains(row, "`"+name+"`") || strings.Contains(row, "`"+name+"[]`"))
		}) {
			t.Errorf("the table of the input does not name %s", path)
		}
	}
	if len(paths) < 60 {
		t.Errorf("only %d fields in the schema", len(paths))
	}
}

// fields are the paths of all fields of a schema; lists are not in them.
func fields(schema map[string]any, at string) []string {
	var out []string
	if items, ok := schema["items"].(map[string]any); ok {
		out = append(out, fields(items, at)...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, below := range properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		out = append(out, path)
		if object, ok := below.(map[string]any); ok {
			out = append(out, fields(object, path)...)
		}
	}
	slices.Sort(out)
	return out
}

var link = regexp.MustCompile(`\]\(#([^)]*)\)`)

// Links within the page lead to a heading.
func TestReadmeLinks(t *testing.T) {
	text := readme(t)
	var anchors []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			anchors = append(anchors, anchor(strings.TrimSpace(strings.TrimLeft(line, "#"))))
		}
	}
	links := link.FindAllStringSubmatch(text, -1)
	for _, l := range links {
		if !slices.Contains(anchors, l[1]) {
			t.Errorf("#%s is no heading of the page", l[1])
		}
	}
	if len(links) < 10 {
		t.Errorf("only %d links", len(links))
	}
}

// anchor is how a heading is linked to.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Every shipped rule stands in the table of files, in the row of its file.
func TestReadmeNamesEachRule(t *testing.T) {
	text := readme(t)
	for _, r := range load(t, policies.FS).Rules() {
		named := false
		for row := range strings.Lines(text) {
			named = named || strings.HasPrefix(row, fmt.Sprintf("| `%s` ", r.File)) && strings.Contains(row, "`"+r.Reason+"`")
		}
		if !named {
			t.Errorf("the row of %s does not name %s", r.File, r.Reason)
		}
	}
}

// What the table of pitfalls says of Rego is so.
func TestReadmePitfalls(t *testing.T) {
	cases := map[string]struct{ reason, is, expression string }{
		"Unknown":  {"text sorts above every number", "input.balance.remaining > 1", `"unknown" > 1`},
		"Quotes":   {"a number in quotes is text", `3 >= "3"`, `count([true | 3 >= "3"]) == 0`},
		"Absent":   {"a negation over nothing holds", "not data.labels[input.service.name].canary", `count([true | not data.labels["nobody"].canary]) == 1`},
		"Every":    {"every of nothing holds", "every o in input.state.objectives", `count([true | every o in [] { o.state == "met" }]) == 1`},
		"Any":      {"a condition over a list holds for any", `input.dependencies[_].state != "met"`, `count([true | [{"state": "met"}, {"state": "breached"}][_].state != "met"]) == 1`},
		"Set":      {"a set holds a value once", "count({t.outcome", `count({t | some t in ["no-change", "no-change"]}) == 1`},
		"Object":   {"an object equals no text", `"two-people" in gate.approval`, `count([true | "two-people" in {"class", {"reason": "two-people"}}]) == 0`},
		"Lists":    {"lists are replaced", `{"tried": [attempt]}`, `object.union({"tried": [1, 2]}, {"tried": [3]}) == {"tried": [3]}`},
		"TimeZone": {"the hour is in UTC", "time.clock(time.parse_rfc3339_ns(input.now))", `time.clock(time.parse_rfc3339_ns("2026-07-01T10:00:00Z"))[0] == 10`},
	}
	_, table, _ := strings.Cut(readme(t), "## Pitfalls\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(table, tc.is) {
				t.Errorf("the page does not show %s", tc.is)
			}
			var holds bool
			if ask(t, tc.expression, &holds); !holds {
				t.Errorf("%s: %s is false", tc.reason, tc.expression)
			}
		})
	}
}

package shipped_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/policies"
)

// recipe is one of the page for authors: rules and tests to add to the bundle.
type recipe struct {
	title, rules, tests string
}

var numbered = regexp.MustCompile(`^\d+\. `)

func recipes(t testing.TB) []recipe {
	t.Helper()
	var out []recipe
	for _, b := range blocks(t) {
		switch {
		case !numbered.MatchString(b.heading) || b.language != "rego":
		case len(out) == 0 || out[len(out)-1].title != b.heading:
			out = append(out, recipe{title: b.heading, rules: b.text})
		default:
			if out[len(out)-1].tests != "" {
				t.Fatalf("line %d: a third block of Rego in recipe %s", b.line, b.heading)
			}
			out[len(out)-1].tests = b.text
		}
	}
	if len(out) != 10 {
		t.Fatalf("%d recipes, want 10", len(out))
	}
	return out
}

// with adds recipes to a copy of the shipped bundle, each as two files.
func with(t testing.TB, rs ...recipe) fstest.MapFS {
	t.Helper()
	b := files(t, policies.FS)
	for i, r := range rs {
		name := "recipe"
		if len(rs) > 1 {
			name = fmt.Sprintf("recipe%d", i+1)
		}
		b[name+".rego"] = &fstest.MapFile{Data: []byte(r.rules)}
		b[name+"_test.rego"] = &fstest.MapFile{Data: []byte(r.tests)}
	}
	return b
}

// sound holds a bundle to what an author is told of it: nothing to find, every
// test passes, and the recipes are reached wholly.
func sound(t *testing.T, b fstest.MapFS) {
	t.Helper()
	for _, f := range rego.Check(b) {
		t.Error(f)
	}
	for _, l := range passes(t, b).Uncovered {
		if strings.HasPrefix(l.File, "recipe") {
			t.Errorf("%s:%d-%d: not reached by a test", l.File, l.First, l.Last)
		}
	}
}

func TestRecipes(t *testing.T) {
	for _, r := range recipes(t) {
		t.Run(r.title, func(t *testing.T) {
			b := with(t, r)
			sound(t, b)
			before, after := load(t, policies.FS).Rules(), load(t, b).Rules()
			if len(after) != len(before)+1 {
				t.Errorf("%d rules more, want one", len(after)-len(before))
			}
			for _, name := range []string{"recipe.rego", "recipe_test.rego"} {
				src := b[name].Data
				out, err := format.SourceWithOpts(name, src, format.Opts{RegoVersion: ast.RegoV1})
				if err != nil || string(out) != string(src) {
					t.Errorf("%s is not formatted (%v), want\n%s", name, err, out)
				}
			}
			for _, rule := range parsed(t, "recipe.rego", b["recipe.rego"].Data).Rules {
				for _, a := range rule.Annotations {
					if a.Description == "" || a.Custom["remedy"] == "" {
						t.Errorf("line %d: description %q, remedy %q", rule.Location.Row, a.Description, a.Custom["remedy"])
					}
				}
			}
		})
	}
}

func TestRecipesTogether(t *testing.T) {
	b := with(t, recipes(t)...)
	sound(t, b)
	for _, f := range regolint.Check(t.Context(), b, regolint.Options{}) {
		t.Error(f)
	}
}

// Authors copy the tests of a recipe as a pattern for their own: each condition
// of its rule must be in them.
func TestRecipesTestEachCondition(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a recipe's tests once for each condition")
	}
	t.Parallel()
	for _, r := range recipes(t) {
		modules := map[string]*ast.Module{}
		for name, f := range with(t, r) {
			if strings.HasSuffix(name, ".rego") {
				modules[name] = parsed(t, name, f.Data)
			}
		}
		b, m := mutable{data: stock(t).Data, modules: modules}, modules["recipe.rego"]
		for i, rule := range m.Rules {
			for _, change := range mutations(rule) {
				mutant := m.Copy()
				change.take(mutant, i)
				if failed, compiled := b.fails(t, "recipe.rego", mutant); compiled && !failed {
					t.Errorf("recipe %s, line %d: no test fails without %s", r.title, rule.Location.Row, change.what)
				}
			}
		}
	}
}

// The rules that are shown elsewhere on the page load too.
func TestReadmeRules(t *testing.T) {
	n := 0
	for _, b := range blocks(t) {
		if b.language != "rego" || numbered.MatchString(b.heading) {
			continue
		}
		n++
		fsys := files(t, policies.FS)
		fsys["shown.rego"] = &fstest.MapFile{Data: []byte(b.text)}
		if _, err := rego.Load(fsys, rego.Options{}); err != nil {
			t.Errorf("line %d: %v", b.line, err)
		}
	}
	if n == 0 {
		t.Error("no rule is shown")
	}
}

// The typo that an author is told to make is found in the words that the page
// has for it.
func TestReadmeTypo(t *testing.T) {
	r := recipes(t)[0]
	b := files(t, policies.FS)
	b["restarts.rego"] = &fstest.MapFile{Data: []byte(strings.Replace(r.rules, "input.action.name", "input.acton.name", 1))}
	var found []string
	for _, f := range rego.Check(b) {
		found = append(found, "policies/"+f.String())
	}
	want := under(t, "Your first rule, in ten minutes", "")[0].text
	if got := strings.Join(found, "\n"); !strings.Contains(want, "\n"+got+"\n") {
		t.Errorf("the page says\n%s\nthe check says\n%s", want, got)
	}
}

// The labels on the page are data that loads, and the recipes read them.
func TestReadmeLabels(t *testing.T) {
	shown := under(t, "Data", "yaml")
	if len(shown) != 1 {
		t.Fatalf("%d blocks of data, want 1", len(shown))
	}
	b := with(t, recipes(t)...)
	text := strings.Replace(string(b["data.yaml"].Data), "labels: {}\n", shown[0].text, 1)
	b["data.yaml"] = &fstest.MapFile{Data: []byte(text)}
	sound(t, b)
	for _, label := range []string{"canary", "replicaCost", "frozenUntil"} {
		if !strings.Contains(shown[0].text, label+":") {
			t.Errorf("the label %s of the recipes is not shown", label)
		}
	}
}

// The table of cases on the page is one that passes, with the rule of the first
// recipe, on the example and on a base that is named.
func TestReadmeCases(t *testing.T) {
	shown := under(t, "Tests", "yaml")
	if len(shown) != 1 {
		t.Fatalf("%d tables of cases, want 1", len(shown))
	}
	table, err := regotest.ReadTable(spec.File{Name: "cases.yaml", Data: []byte(shown[0].text)}, func(name string) ([]byte, error) {
		if name != "input.json" {
			return nil, fmt.Errorf("%s is not on the page", name)
		}
		return gate.ExampleInput(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := rego.Read(with(t, recipes(t)[0]))
	if err != nil {
		t.Fatal(err)
	}
	r, err := regotest.Run(t.Context(), b, regotest.Options{Tables: []regotest.Table{table}, Run: regexp.MustCompile("a restart")})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 || r.Passed != len(table.Cases) || r.Passed < 2 {
		t.Errorf("%d passed of %d: %+v", r.Passed, len(table.Cases), r.Failures)
	}
	names := map[string]bool{}
	for _, c := range table.Cases {
		names[c.Want.Verdict.String()] = true
	}
	if !maps.Equal(names, map[string]bool{"auto": true, "approval": true}) {
		t.Errorf("the table wants %v: show one that asks and one that runs", names)
	}
}

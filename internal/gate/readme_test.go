package gate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// elsewhere are the codes that no change of granted alone leads to, with the
// test that shows them.
var elsewhere = map[string]string{
	gate.ReasonUndefined:     "TestDecideRulings",
	gate.ReasonInputTooLarge: "TestDecideRulings",
	gate.ReasonNeedsChanged:  "TestApprovedTicket",
	gate.ReasonGrouped:       "TestGroupedNeedsAnAim",
	gate.ReasonInput:         "TestInputThatCannotBeWritten",
}

// notFloors are codes that keep nothing back.
var notFloors = []string{gate.ReasonApproved, gate.ReasonUnsettled}

// The table of floors is whole: each code stands in it once with its effect, and
// under a policy that allows everything no case of it gives auto.
func TestFloorsTable(t *testing.T) {
	table := floorsTable(t)
	codes := declaredCodes(t)
	for code := range table {
		if !slices.Contains(codes, code) {
			t.Errorf("the table has %s, which the code does not know", code)
		}
	}
	for _, code := range codes {
		if slices.Contains(notFloors, code) {
			continue
		}
		effect, ok := table[code]
		if !ok {
			t.Errorf("the table lacks %s", code)
			continue
		}
		if elsewhere[code] != "" {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(casesOf(code)), func(d gate.Decision) bool { return effectWord(d) == effect }) {
			t.Errorf("no case shows %s to have the effect %s", code, effect)
		}
		for d := range casesOf(code) {
			if d.Verdict == gate.Auto {
				t.Errorf("%s beside a policy that allows everything gives auto", code)
			}
		}
	}
}

// casesOf are the decisions of all cases in which the code comes first.
func casesOf(code string) func(func(gate.Decision) bool) {
	return func(yield func(gate.Decision) bool) {
		for _, tc := range floorCases() {
			if tc.want.first != code {
				continue
			}
			c := granted()
			tc.change(&c)
			if !yield(gate.Decide(c, allows())) {
				return
			}
		}
	}
}

func effectWord(d gate.Decision) string {
	if d.Hold {
		return "hold"
	}
	return d.Verdict.String()
}

var floorRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (hold|approval|escalate|deny) \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$")

func floorsTable(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range floorRow.FindAllStringSubmatch(string(raw), -1) {
		if out[m[1]] != "" {
			t.Errorf("the table has %s twice", m[1])
		}
		out[m[1]] = m[2]
	}
	if rows := strings.Count(string(raw), "\n| `"); rows != len(out) || rows < 40 {
		t.Errorf("%d rows, of which %d can be read", rows, len(out))
	}
	return out
}

// declaredCodes are the constants named Reason… of the package.
func declaredCodes(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "gate.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Reason") || len(v.Values) != 1 {
			return true
		}
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, code)
		}
		return true
	})
	if len(out) < 40 {
		t.Fatalf("only %d codes", len(out))
	}
	return out
}

// What cannot be written exactly is judged by nobody.
func TestInputThatCannotBeWritten(t *testing.T) {
	c := granted()
	c.Proposal.Parameters["replicas"] = int64(1<<53 + 1)
	d := gate.Decide(c, allows())
	if _, ok := d.Permit(); ok || d.Verdict != gate.Deny || !slices.ContainsFunc(d.Reasons, func(r gate.Reason) bool { return r.Code == gate.ReasonInput }) {
		t.Errorf("%s: %+v", d.Verdict, d.Reasons)
	}
}

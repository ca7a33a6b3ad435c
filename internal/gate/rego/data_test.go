package rego_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

func TestDataFaultsNameTheirLine(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("labels:\n")
		for i := range n {
			fmt.Fprintf(&b, "  svc-%d: a\n", i)
		}
		return b.String()
	}
	cases := map[string]struct {
		reason string
		name   string
		data   string
		// want is how the finding begins, "" for none.
		want string
	}{
		"Null":          {"a blank value", "data.yaml", "limits:\n  a: 1\n  b:\n", "data.yaml:3: data.limits.b is null"},
		"NullInList":    {"in a list of JSON that tabs indent", "data.json", "{\n\t\"a\": [1,\n\t\tnull]\n}", "data.json:3: data.a[1] is null"},
		"Broken":        {"no YAML", "data.yaml", "a: 1\nb: [\n", "data.yaml:2: not one JSON or YAML object"},
		"List":          {"no object", "data.yaml", "[1]", "data.yaml:1: not one JSON or YAML object"},
		"Twice":         {"one key twice", "data.yaml", "a:\n  n: 1\n  m: 2\n  n: 3\n", "data.yaml:4: key \"n\" is there twice"},
		"TwiceJSON":     {"in JSON", "data.json", "{\"a\": [{\"n\": 1}, {\"n\": {},\n\"n\": 2}]}", "data.json:2: key \"n\" is there twice"},
		"NotTwice":      {"one key in two objects", "data.json", `{"a": {"n": ["n", "n"]}, "n": {"a": {"n": 1}}}`, ""},
		"Documents":     {"a second document", "data.yaml", "a: 1\n---\nb: 2\n", "data.yaml:1: not one JSON or YAML object: more than one document"},
		"Blank":         {"comments alone", "data.yaml", "# nothing yet\n", ""},
		"Reserved":      {"the packages' key", "data.yaml", "a: 1\nsetpoint: {gate: {auto: [x]}}\n", "data.yaml:2: data has the key setpoint"},
		"ReservedBelow": {"as a folder", "setpoint/gate/data.yaml", "auto: [x]\n", "setpoint/gate/data.yaml:1: data has the key setpoint"},
		"Exception":     {"an exception without end", "data.yaml", "exceptions:\n  - {service: a, until: \"2026-12-01T00:00:00Z\"}\n  - {service: b}\n", "data.yaml:3: data.exceptions[1] has no until"},
		"Exceptions":    {"no list", "exceptions/data.yaml", "a: 1\n", "exceptions/data.yaml:1: data.exceptions must be a list"},
		"Many":          {"more keys than YAML is read with in time", "data.yaml", many(20_001), "data.yaml:2: an object with 20001 keys takes too long"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got := rego.Check(bundle("p.rego", four, tc.name, tc.data)).Errors()
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), tc.want)) {
				t.Errorf("%s: got %v, want %s", tc.reason, got, tc.want)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

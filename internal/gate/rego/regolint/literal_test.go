package regolint_test

import (
	"context"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
)

// A rule that is a literal object is an everyday way to write a table of words.
func TestLiteralTable(t *testing.T) {
	src := gatePackage + `auto contains "x" if not final[input.action.reversal]

final := {"irreversible": true}
`
	got := regolint.Check(context.Background(), bundle("p.rego", src), regolint.Options{})
	all := make([]string, 0, len(got))
	for _, f := range got {
		all = append(all, f.String())
	}
	said := strings.Join(all, "\n")
	if strings.Contains(said, "could not be looked at") {
		t.Errorf("not looked at: %s", said)
	}
	if want := "p.rego:3: grant x: not final[input.action.reversal] holds also when"; !strings.Contains(said, want) {
		t.Errorf("got %s, want %s", said, want)
	}
}

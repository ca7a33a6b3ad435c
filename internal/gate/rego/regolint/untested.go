package regolint

import (
	"context"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint/terms"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
)

// lintUntested runs the bundle's tests and finds the grants that none of them
// reaches: nobody has seen under which input such a rule lets an action run.
func lintUntested(ctx context.Context, b rego.Bundle, s *terms.Source, o Options) rego.Findings {
	grants := grants(s)
	if len(grants) == 0 {
		return nil
	}
	report, err := regotest.Run(ctx, b, regotest.Options{Tables: o.Tables})
	if err != nil {
		return rego.Findings{{Code: CodeUntested, Severity: rego.SeverityLint, Text: "what tests reach is not known: " + err.Error()}}
	}
	var out rego.Findings
	for _, r := range grants {
		for _, l := range report.Uncovered {
			if l.File == r.Location.File && l.First <= r.Location.Row && r.Location.Row <= l.Last {
				out = append(out, at(r.Location, CodeUntested, rego.SeverityLint,
					fmt.Sprintf("grant %q is reached by no test; write one that it grants, and one that it does not", reasonOf(r))))
				break
			}
		}
	}
	return out
}

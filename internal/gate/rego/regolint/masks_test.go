package regolint_test

import (
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
)

// What masks the decision log sees an event and decides nothing: what is wrong
// with a rule that grants is not wrong with it.
func TestMasksAreNoGrants(t *testing.T) {
	fsys := bundle(
		"p.rego", gatePackage+told+"auto contains \"x\" if input.proposal.action == \"scale\"\n",
		"p_test.rego", "package setpoint.gate_test\n\ntest_x if \"x\" in data.setpoint.gate.auto with input as {\"proposal\": {\"action\": \"scale\"}}\n",
		"log.rego", "package system.log\n\nmask contains \"/input/service/owner\" if not input.input.proposal.undo\n\nmask contains \"/result\" if input.result.verdict == \"auto\"\n",
		"log_test.rego", "package system.log_test\n\ntest_mask if count(data.system.log.mask) == 1 with input as {\"input\": {\"proposal\": {\"undo\": false}}}\n",
	)
	if got := regolint.Check(t.Context(), fsys, regolint.Options{}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

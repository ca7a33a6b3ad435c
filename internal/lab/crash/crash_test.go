package crash_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/crash"
)

// TestShort tries a sample of every fault class on real processes; `make crash`
// tries them all.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("about a minute of real time")
	}
	agent := filepath.Join(t.TempDir(), "setpoint")
	build := exec.Command("go", "build", "-tags", "crashtest", "-o", agent, "github.com/setpoint-dev/setpoint/cmd/setpoint")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	table, err := crash.Run(t.Context(), crash.Options{Agent: agent, Short: true, Parallel: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table.Failed {
		t.Errorf("%s/%s: %q\nhistory: %s", r.Class, r.Name, r.Violations, r.History)
	}
	for _, s := range table.Skips {
		t.Log("skipped:", s)
	}
	if len(table.Rows) != len(crash.Classes()) {
		t.Errorf("%d rows, want one of each of the %d classes", len(table.Rows), len(crash.Classes()))
	}
	for _, r := range table.Rows {
		if r.Points+r.Skipped == 0 || r.Points > 0 && r.Checks == 0 {
			t.Errorf("%s: %d points and %d checks prove nothing", r.Class, r.Points, r.Checks)
		}
		t.Logf("%s: %d points, %d effects, %d double, %d acknowledged, %d lost, %d invariants, %d checks",
			r.Class, r.Points, r.Effects, r.DoubleEffects, r.Acknowledged, r.LostEntries, r.Invariants, r.Checks)
	}
}

package reconcile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// Every metric that the shipped alert rules name is one that the loop, or the
// agent around it, registers: a rule on a name that nobody exports never fires.
func TestAlertRulesNameRealMetrics(t *testing.T) {
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	if _, err := reconcile.New(t.Context(), reconcile.Options{
		Config: w.cfg, Documents: w.documents, Measurer: w, Proposer: scripted{w}, Policy: ruled{w},
		Freezes: w.freezer, Now: w.clock, Registerer: registry,
	}); err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 200)
	registry.Describe(descs)
	close(descs)
	registered := map[string]bool{}
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range descs {
		registered[name.FindStringSubmatch(d.String())[1]] = true
	}
	rules, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`setpoint_[a-z_]+`).FindAllString(string(rules), -1)
	if len(used) < 8 {
		t.Fatalf("%d metrics in the rules, which cannot be all", len(used))
	}
	agent, err := filepath.Glob("../../cmd/setpoint/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`Name: "(setpoint_[a-z_]+)"`)
	for _, file := range agent {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(source), -1) {
			registered[m[1]] = true
		}
	}
	for _, m := range used {
		if !registered[m] {
			t.Errorf("deploy/alerts.yaml uses %s, which is not registered", m)
		}
	}
}

func TestAlertRulesByPromtool(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not in PATH: install Debian's package prometheus")
		}
		t.Skip("promtool is not in PATH: install Debian's package prometheus to run this test")
	}
	for _, args := range [][]string{
		{"check", "rules", "../../deploy/alerts.yaml"}, {"test", "rules", "../../deploy/alerts_test.yaml"},
	} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

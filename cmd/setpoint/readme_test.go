package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/gate/rego/regolint"
	"github.com/setpoint-dev/setpoint/policies"
)

// TestReadme keeps README true: its documents validate, its command prints
// what it says, and its policy compiles against the input's schema.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 150 {
		t.Errorf("README has %d lines, want 150 at most", n)
	}
	w := newWorld()
	t.Cleanup(w.close)
	w.ratio = 0.3
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The test's own program is the command when it is called by its name.
	run := func(args ...string) string {
		cmd := exec.Command(os.Args[0])
		cmd.Args = append([]string{"setpoint"}, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "NO_COLOR=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("setpoint %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	write("slo/checkout.yaml", strings.ReplaceAll(fenced(t, text, "yaml"), "http://127.0.0.1:9901", w.actuator.URL))
	run("init", "slo/checkout.yaml", "--prometheus", w.prom.URL)
	config, err := os.ReadFile(filepath.Join(dir, "setpoint.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// What README says to raise, a pager without silences, and one rule.
	write("setpoint.yaml", strings.NewReplacer("maxMode: observe", "maxMode: auto",
		`alertmanager: {url: "http://127.0.0.1:9093"}`, `webhook: {url: "`+w.actuator.URL+`/page"}`).Replace(string(config)))
	write("rules.yaml", "rules: [{service: checkout, notTried: restart, propose: {action: restart}}]\n")
	if out := run("validate"); !strings.Contains(out, "checkout/restart: auto") {
		t.Errorf("validate: %s", out)
	}
	console := fenced(t, text, "console")
	command, want, _ := strings.Cut(strings.TrimPrefix(console, "$ setpoint "), "\n")
	if got := run(strings.Fields(command)...); got != want {
		t.Errorf("setpoint %s printed\n%s\nREADME says\n%s", command, got, want)
	}
	readmePolicy(t, fenced(t, text, "rego"))
}

// fenced is the only fenced block of a language.
func fenced(t *testing.T, text []byte, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks of %s in README, want one", len(found), language)
	}
	return string(found[0][1])
}

// readmePolicy adds the rule to the shipped bundle, as its reader would.
func readmePolicy(t *testing.T, module string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, policies.FS); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "peak.rego"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range regolint.Check(t.Context(), os.DirFS(dir), regolint.Options{}) {
		t.Errorf("README's policy: %s", f)
	}
}

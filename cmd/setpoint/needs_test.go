package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/prompts"
)

// everything is a configuration that names one of each file that can be named.
const everything = `documents: [slo/]
policies: {path: policy/}
prompts: prompts/
sources:
  - name: main
    url: http://127.0.0.1:1
    http: {basic_auth: {username: setpoint, password_file: prom.key}}
proposer:
  provider: openai
  rules: rules.yaml
  endpoints:
    - {name: model, baseURL: "http://127.0.0.1:1/v1", model: m, apiKeyFile: model.key}
receivers:
  - name: oncall
    webhook: {url: "http://127.0.0.1:1/page", secretFile: hook.key}
secrets:
  scaler: scaler.key
web: {listen: "127.0.0.1:0", tokensFile: tokens.yaml}
`

const aPolicy = `package setpoint.gate

# METADATA
# title: Nothing acts at night
# custom: {remedy: wait for the morning}
deny contains "night" if input.service.name == "night"
`

const aService = "apiVersion: openslo/v1\nkind: Service\nmetadata: {name: checkout}\n"

// shadowed is that configuration with a shadow policy.
func shadowed(folder string) string {
	return strings.Replace(everything, "policies: {path: policy/}", "policies: {path: policy/, shadow: "+folder+"}", 1)
}

// hostFiles writes that configuration with all it names into a folder of its
// own and returns the folder.
func hostFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"setpoint.yaml": everything, "slo/checkout.yaml": aService, "policy/gate.rego": aPolicy, "rules.yaml": "rules: []\n",
		"prom.key": "k", "model.key": "k", "hook.key": "k", "scaler.key": "k", "tokens.yaml": "alice: " + strings.Repeat("a", 16) + "\n",
	}
	shipped, err := fs.Glob(prompts.FS, "*.tmpl")
	if err != nil || len(shipped) == 0 {
		t.Fatalf("no prompts: %v", err)
	}
	for _, name := range shipped {
		text, err := fs.ReadFile(prompts.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files["prompts/"+name] = string(text)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	if err := sqlite.Init(filepath.Join(dir, "setpoint.db"), "os:root"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs one command line in that folder; one that hangs fails the test.
func command(t *testing.T, dir string, args ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	done := make(chan int, 1)
	go func() { done <- a.run(append(args, "--config", filepath.Join(dir, "setpoint.yaml"))) }()
	select {
	case code = <-done:
		return code, stdout.String(), strings.ReplaceAll(stderr.String(), dir+"/", "")
	case <-time.After(20 * time.Second):
		t.Fatalf("setpoint %s hangs", strings.Join(args, " "))
		return 0, "", ""
	}
}

// TestValidateChecksWhatRunNeeds: what `run` refuses, `validate` has said
// before, with the place where it is named.
func TestValidateChecksWhatRunNeeds(t *testing.T) {
	missing := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	holds := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { put(t, filepath.Join(dir, name), text) }
	}
	cases := map[string]struct {
		spoil func(*testing.T, string)
		want  string
	}{
		"NoPolicy":     {missing("policy"), "setpoint.yaml:2: policies.path: policy: stat policy: no such file or directory: name the root of the bundle\n"},
		"PolicyBroken": {holds("policy/gate.rego", strings.Replace(aPolicy, "service", "servce", 1)), "policy/gate.rego:6: input.servce.name is not in the gate input"},
		"PolicyTests":  {holds("policy/gate_test.rego", "package setpoint.gate_test\n\nimport data.setpoint.gate\n\ntest_day if \"night\" in gate.deny with input as {\"service\": {\"name\": \"day\"}}\n"), "policy/gate_test.rego:5: test "},
		"NoShadow":     {holds("setpoint.yaml", shadowed("next/")), "setpoint.yaml:2: policies.shadow: policy: stat next: no such file or directory: name the root of the bundle\n"},
		"ShadowBroken": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "setpoint.yaml"), shadowed("next/"))
			put(t, filepath.Join(dir, "next/gate.rego"), strings.Replace(aPolicy, "service", "servce", 1))
		}, "next/gate.rego:6: input.servce.name is not in the gate input"},
		"ShadowIsPolicy": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "setpoint.yaml"), shadowed("next/"))
			if err := os.Symlink("policy", filepath.Join(dir, "next")); err != nil {
				t.Fatal(err)
			}
		}, "setpoint.yaml:2: policies.shadow: is the folder of policies.path, so the two never differ"},
		"NoPrompts":      {missing("prompts"), "setpoint.yaml:3: prompts: stat prompts: no such file or directory\n"},
		"PromptBroken":   {holds("prompts/propose.user.tmpl", "no front matter"), "setpoint.yaml:3: prompts: prompt propose.user.tmpl: starts without front matter"},
		"NoPassword":     {missing("prom.key"), "setpoint.yaml:7: sources[0].http.basic_auth.password_file: stat prom.key: no such file or directory\n"},
		"NoKey":          {missing("model.key"), "setpoint.yaml:12: proposer.endpoints[0].apiKeyFile: stat model.key: no such file or directory\n"},
		"EmptyKey":       {holds("model.key", "\n"), "setpoint.yaml:12: proposer.endpoints[0].apiKeyFile: the file model.key is empty\n"},
		"NoHookSecret":   {missing("hook.key"), "setpoint.yaml:15: receivers[0].webhook.secretFile: stat hook.key: no such file or directory\n"},
		"EmptySecret":    {holds("scaler.key", ""), "setpoint.yaml:17: secrets.scaler: the file scaler.key is empty\n"},
		"NoTokens":       {missing("tokens.yaml"), "setpoint.yaml:18: web.tokensFile: stat tokens.yaml: no such file or directory\n"},
		"TokensRefused":  {holds("tokens.yaml", "# ours\nalice: changeme\n"), "tokens.yaml:2: tokens file: the token of alice is shorter than 16 characters\n"},
		"RulesBroken":    {holds("rules.yaml", "rules:\n  - {propose: none, servce: x}\n"), "rules.yaml:2: "},
		"RulesDoNotFit":  {holds("rules.yaml", "rules:\n  - {service: nobody, propose: none}\n"), "rules.yaml:2: "},
		"NoDocuments":    {missing("slo"), "setpoint.yaml:1: documents: no file or folder slo: "},
		"DocumentBroken": {holds("slo/checkout.yaml", aService+"spec: {decsription: x}\n"), "slo/checkout.yaml:4: spec.decsription: "},
	}
	if code, _, complaints := command(t, hostFiles(t), "validate"); code != exitFine || complaints != "" {
		t.Fatalf("with everything there: exit %d, %s", code, complaints)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := hostFiles(t)
			tc.spoil(t, dir)
			code, out, complaints := command(t, dir, "validate")
			if code != exitError || out != "" || !strings.HasPrefix(complaints, tc.want) {
				t.Errorf("exit %d, output %q, complaints:\n%swant exit 1 and first\n%s", code, out, complaints, tc.want)
			}
			if !strings.HasSuffix(complaints, "setpoint: 1 fault; nothing was loaded\n") {
				t.Errorf("one cause, not one fault:\n%s", complaints)
			}
		})
	}
}

// TestValidateNamesAllFaults: one mistake does not hide another.
func TestValidateNamesAllFaults(t *testing.T) {
	dir := hostFiles(t)
	for _, name := range []string{"policy", "prompts", "prom.key", "model.key", "hook.key", "scaler.key", "tokens.yaml", "slo"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "rules.yaml"), "rules: [")
	code, _, complaints := command(t, dir, "validate")
	if code != exitError || !strings.HasSuffix(complaints, "setpoint: 9 faults; nothing was loaded\n") {
		t.Errorf("exit %d:\n%s", code, complaints)
	}
	code, out, _ := command(t, dir, "validate", "-o", "json")
	if code != exitError || strings.Count(out, `"text"`) != 9 || !strings.Contains(out, `"path": "secrets.scaler"`) {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestNoFileHangs: whoever can put a pipe, a device or a socket where a file
// is read could hang the agent, or fill its memory.
func TestNoFileHangs(t *testing.T) {
	places := map[string]string{
		"Configuration": "setpoint.yaml", "Document": "slo/odd.yaml", "Rules": "rules.yaml", "Policy": "policy/odd.rego", "Prompt": "prompts/propose.user.tmpl",
		"Password": "prom.key", "Key": "model.key", "Hook": "hook.key", "Secret": "scaler.key", "Tokens": "tokens.yaml",
	}
	oddities := map[string]struct {
		want string
		make func(path string) error
	}{
		"Pipe":    {"is a named pipe, want a regular file", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		"Device":  {"is a device, want a regular file", func(path string) error { return os.Symlink("/dev/zero", path) }},
		"Folder":  {"is a folder", func(path string) error { return os.Mkdir(path, 0o755) }},
		"TooLong": {"of 1048576", func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) }},
	}
	for oddity, odd := range oddities {
		for place, name := range places {
			switch oddity + place {
			case "FolderDocument", "FolderPolicy", "FolderPrompt", "TooLongPolicy":
				continue // A folder is no oddity there; the policy has a limit of its own.
			}
			t.Run(oddity+place, func(t *testing.T) {
				dir := hostFiles(t)
				path := filepath.Join(dir, name)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := odd.make(path); err != nil {
					t.Fatal(err)
				}
				code, _, complaints := command(t, dir, "validate")
				if code != exitError || !strings.Contains(complaints, odd.want) {
					t.Errorf("validate: exit %d, %.300s", code, complaints)
				}
				if place == "Policy" {
					return // `run` starts, and only observes.
				}
				if code, _, complaints := command(t, dir, "run"); code != exitError || !strings.Contains(complaints, odd.want) {
					t.Errorf("run: exit %d, %.300s", code, complaints)
				}
			})
		}
	}
}

func TestSocketIsNoDocument(t *testing.T) {
	dir := hostFiles(t)
	l, err := net.Listen("unix", filepath.Join(dir, "slo", "s.yaml"))
	if err != nil {
		t.Skip("no unix socket here: ", err)
	}
	defer func() { _ = l.Close() }() // The test is over.
	if code, _, complaints := command(t, dir, "validate"); code != exitError || !strings.Contains(complaints, "slo/s.yaml: cannot be read: slo/s.yaml is a socket") {
		t.Errorf("exit %d, %s", code, complaints)
	}
}

// TestReloadIsAllOrNothing: tokens, documents and policy change together, or
// not at all.
func TestReloadIsAllOrNothing(t *testing.T) {
	two := "alice: " + strings.Repeat("a", 16) + "\nbob: " + strings.Repeat("b", 16) + "\n"
	second := strings.ReplaceAll(aService, "checkout", "search")
	cases := map[string]struct {
		reason, file, text string
		ok                 bool
	}{
		"Good":        {"everything is good", "slo/third.yaml", strings.ReplaceAll(aService, "checkout", "third"), true},
		"Documents":   {"a revoked token would be gone, and the documents stay", "slo/checkout.yaml", "nonsense", false},
		"Rules":       {"rules belong to the documents", "rules.yaml", "nonsense", false},
		"Policy":      {"a policy that does not load", "policy/gate.rego", "nonsense", false},
		"PolicyTests": {"a policy whose own tests fail", "policy/gate_test.rego", "package setpoint.gate_test\n\ntest_wrong if false\n", false},
		"Tokens":      {"tokens that are refused", "tokens.yaml", "alice: short", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := hostFiles(t)
			d := startedDaemon(t, dir)
			put(t, filepath.Join(dir, "tokens.yaml"), two)
			put(t, filepath.Join(dir, "slo/search.yaml"), second)
			put(t, filepath.Join(dir, tc.file), tc.text)
			err := d.reload(t.Context())
			if (err == nil) != tc.ok {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := []int{1, 1}
			if tc.ok {
				want = []int{2, 3}
			}
			if diff := cmp.Diff(want, []int{d.tokens.get().Len(), len(d.loop.Set().Services)}); diff != "" {
				t.Errorf("%s: tokens and services (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReloadTakesTheShadow: a reload asks the shadow policy of this moment, and
// one that does not load keeps nothing else from changing.
func TestReloadTakesTheShadow(t *testing.T) {
	dir := hostFiles(t)
	put(t, filepath.Join(dir, "setpoint.yaml"), shadowed("next/"))
	failing := "package setpoint.gate_test\n\ntest_wrong if false\n"
	t.Run("Running", func(t *testing.T) {
		d := startedDaemon(t, dir)
		if d.options.Shadow != nil || d.shadowFault == "" {
			t.Fatalf("a shadow without a folder: %v, fault %q", d.options.Shadow, d.shadowFault)
		}
		put(t, filepath.Join(dir, "policy/gate.rego"), strings.Replace(aPolicy, "night", "nightfall", 1))
		if err := d.reload(t.Context()); err != nil {
			t.Fatalf("the shadow's fault: %v", err)
		}
		put(t, filepath.Join(dir, "next/gate.rego"), aPolicy)
		put(t, filepath.Join(dir, "next/gate_test.rego"), failing)
		put(t, filepath.Join(dir, "policy/gate_test.rego"), failing)
		if err := d.reload(t.Context()); err == nil {
			t.Error("the policy was swapped although its tests fail")
		}
		var binding, shadow string
		d.loop.View(func(s *ledger.State) { binding, shadow = s.Policy, s.ShadowPolicy })
		if binding != d.policy.inForce || shadow != d.shadow.inForce || shadow == "" || shadow == binding {
			t.Errorf("recorded: policy %q, shadow %q; in force: policy %q, shadow %q", binding, shadow, d.policy.inForce, d.shadow.inForce)
		}
	})
	t.Run("Starting", func(t *testing.T) {
		d := startedDaemon(t, dir)
		if d.options.Shadow == nil || d.shadowFault != "" || d.options.PolicyFault == "" {
			t.Errorf("shadow %v, its fault %q, the policy's %q", d.options.Shadow, d.shadowFault, d.options.PolicyFault)
		}
	})
}

// TestReloadNamesAllFaults: who mends one fault is not sent round again.
func TestReloadNamesAllFaults(t *testing.T) {
	dir := hostFiles(t)
	d := startedDaemon(t, dir)
	for _, name := range []string{"tokens.yaml", "slo/checkout.yaml", "policy/gate.rego"} {
		put(t, filepath.Join(dir, name), "nonsense")
	}
	err := d.reload(t.Context())
	for _, want := range []string{"tokens.yaml:1", "slo/checkout.yaml:1", "gate.rego:1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in: %v", want, err)
		}
	}
}

// startedDaemon is an agent that makes no pass and listens nowhere.
func startedDaemon(t *testing.T, dir string) *daemon {
	t.Helper()
	a := &app{out: os.Stdout, err: os.Stderr, getenv: os.Getenv, now: time.Now, configPath: filepath.Join(dir, "setpoint.yaml")}
	s, err := a.site()
	if err != nil {
		t.Fatal(err)
	}
	store, err := a.openLedger(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.Background()
	d, err := a.daemon(ctx, s, store, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if d.loop, err = reconcile.New(ctx, d.options); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReasonsAreBounded: the file of a freeze is written before anybody else
// looks at it.
func TestReasonsAreBounded(t *testing.T) {
	dir := hostFiles(t)
	long := strings.Repeat("x", 900<<10)
	for _, args := range [][]string{
		{"freeze"}, {"thaw", "--all"}, {"approve", "t1"}, {"deny", "t1"}, {"settle", "d1", "--as", "landed"}, {"budget", "reset"},
	} {
		t.Run(args[0], func(t *testing.T) {
			code, out, complaints := command(t, dir, append(args, "--reason", long)...)
			if code != exitError || out != "" || !strings.Contains(complaints, fmt.Sprintf("--reason: %d characters are too long: give 2000 at most", len(long))) {
				t.Errorf("exit %d, %.200s %.200s", code, out, complaints)
			}
		})
	}
	if code, _, complaints := command(t, dir, "freeze", "--reason", " \n "); code != exitError || !strings.Contains(complaints, "--reason is required") {
		t.Errorf("a blank reason is none: exit %d, %s", code, complaints)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "setpoint.freeze")); err == nil {
		t.Errorf("a refused freeze wrote %v", left)
	}
}

package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "write the golden .err files")

func read(t testing.TB, name string) spec.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: name, Data: data}
}

// TestInvalid compares the whole error of each testdata/invalid-<what>.yaml
// with invalid-<what>.err.
func TestInvalid(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, name := range names {
		name := filepath.Base(name)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			c, err := config.Parse(read(t, name))
			if err == nil {
				t.Fatal("parses without an error")
			}
			if diff := cmp.Diff(config.Config{}, c); diff != "" {
				t.Errorf("half-loads: (-want, +got)\n%s", diff)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret:\n%v", err)
			}
			golden(t, filepath.Join("testdata", strings.TrimSuffix(name, ".yaml")+".err"), err.Error()+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("no golden text (run with -update once, and read what it wrote): %v", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: (-want, +got)\n%s", file, diff)
	}
}

func TestDefaults(t *testing.T) {
	got, err := config.Parse(read(t, "minimal.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Sources = []config.Source{{
		Name: "main", URL: "http://127.0.0.1:9090", HTTP: config.HTTP{HTTPClientConfig: promconfig.DefaultHTTPClientConfig},
		Timeout: 10 * time.Second, MaxSampleAge: 90 * time.Second, MaxConcurrency: 2, QueriesPerSecond: 20, Chunk: 100,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
	if got.Limits.MaxMode != spec.Observe {
		t.Errorf("a config that says nothing allows %s, want observe", got.Limits.MaxMode)
	}
}

func TestFull(t *testing.T) {
	c, err := config.Parse(read(t, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	headers := c.Sources[0].HTTP.HTTPHeaders
	if headers == nil || len(headers.Headers) != 1 {
		t.Errorf("http_headers is %+v, want one header", headers)
	}
	c.SetDirectory("/etc/setpoint")
	got := map[string]any{
		"documents": c.Documents, "policies": c.Policies.Path, "prompts": c.Prompts, "rules": c.Proposer.Rules,
		"database": c.Ledger.SQLite.Path, "freeze": c.Ledger.FreezeDir, "socket": c.Web.Socket, "tokens": c.Web.TokensFile,
		"key": c.Proposer.Endpoints[0].APIKeyFile, "hook": c.Receivers[1].Webhook.SecretFile, "secret": c.Secrets["scaler"],
		"password": c.Sources[0].HTTP.BasicAuth.PasswordFile, "ca": c.Sources[0].HTTP.TLSConfig.CAFile,
		"shadow": c.Policies.Shadow, "changes": c.Changes.File, "kubeconfig": c.Executors.Kubernetes.Kubeconfig,
		"programs": c.Executors.Command.Allow, "variables": c.Executors.Command.EnvAllow,
		"maxMode": c.Limits.MaxMode, "rate": c.Sources[0].QueriesPerSecond,
		"redirects": c.Sources[0].HTTP.FollowRedirects,
	}
	want := map[string]any{
		"documents": []string{"/etc/setpoint/slo", "/etc/setpoint/slo/*.yaml"}, "policies": "/etc/setpoint/policies",
		"prompts": "/etc/setpoint/prompts", "rules": "/etc/setpoint/rules.yaml",
		"database": "/etc/setpoint/data/setpoint.db", "freeze": "/var/lib/setpoint/freeze",
		"socket": "/etc/setpoint/setpoint.sock", "tokens": "/etc/setpoint/tokens.yaml",
		"key": "/etc/setpoint/model.key", "hook": "/etc/setpoint/hook.key", "secret": "/etc/setpoint/scaler.key",
		"password": "/etc/setpoint/prom.password", "ca": "/etc/setpoint/ca.pem",
		"shadow": "/etc/setpoint/policies-next", "changes": "", "kubeconfig": "",
		"programs":  []string{"/etc/setpoint/restart.sh", "/etc/setpoint/scale", "/opt/./flush"},
		"variables": []string{"PATH"},
		"maxMode":   spec.Approval, "rate": 7.5, "redirects": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		f.Add(read(f, filepath.Base(name)).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(spec.File{Name: "fuzz.yaml", Data: data})
		if err == nil {
			if len(c.Sources) == 0 || len(c.Documents) == 0 {
				t.Errorf("accepted without sources or documents: %+v", c)
			}
			return
		}
		var faults spec.Faults
		if !asFaults(err, &faults) || len(faults) == 0 {
			t.Fatalf("error %T is no list of faults: %v", err, err)
		}
	})
}

func asFaults(err error, into *spec.Faults) bool {
	fs, ok := err.(spec.Faults) //nolint:errorlint // The contract is the type itself.
	*into = fs
	return ok
}

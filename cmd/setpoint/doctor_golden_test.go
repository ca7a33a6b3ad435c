package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	labpager "github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// clinic is everything that a doctor looks at, as real servers and files.
type clinic struct {
	*liveWorld
	// edge is a second source, spare a second endpoint.
	edge, model, spare, alertmanager, hook, actuator string
	// words are what stands in a golden for what differs from run to run.
	words []string
}

const doctorConfig = `documents: [slo/]
policies: {POLICIES}
sources:
  - {name: main, url: "PROM"}
  - {name: edge, url: "EDGE"}
proposer:
  provider: openai
  rules: rules.yaml
  reply: json_schema
  endpoints:
    - {name: main, baseURL: "MODEL/v1", model: some-model, apiKeyFile: model.key, timeout: 5s}
    - {name: spare, baseURL: "SPARE/v1", model: other-model, apiKeyFile: spare.key, timeout: 5s}
receivers:
  - {name: oncall, alertmanager: {url: "ALERTMANAGER"}}
  - {name: backup, webhook: {url: "HOOK/page/of-a-secret-path", secretFile: hook.key}}
executors:
  webhook: {allow: ["ACTUATOR/"]}
  command: {allow: ["./restart.sh", "./status.sh"], envAllow: [PATH]}
secrets: {scaler: scaler.key}
web: {listen: "127.0.0.1:0", tokensFile: tokens.yaml}
`

const doctorActions = `---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: checkout}
spec:
  service: checkout
  objectives: {checkout: {burnRates: [{short: 5m, long: 1h, factor: 2, page: true}]}}
  escalation: {receivers: [oncall, backup]}
  actions:
    - name: scale
      uses: webhook.post
      target: {url: "ACTUATOR/checkout", statusURL: "ACTUATOR/checkout", secret: scaler, dedup: true}
      class: auto
      reversal: restore
      settle: 1m
      timeout: 5s
      parameters: {replicas: {type: integer, minimum: 3, maximum: 20, maximumFactor: 2}}
    - name: restart
      uses: command.run
      target: {argv: [../restart.sh], statusArgv: [../status.sh]}
      class: auto
      reversal: transient
      settle: 1m
      timeout: 5s
`

const canary = "sk-canary-0123456789abcdef"

// newClinic writes what a healthy site has. Servers that are not named listen
// nowhere.
func newClinic(t *testing.T, endsBefore time.Duration) *clinic {
	t.Helper()
	c := &clinic{liveWorld: newLiveWorld(t, 15*24*time.Hour)}
	c.count(t, 3*time.Hour, endsBefore, map[string]float64{
		`http_requests_total{service="checkout",code="200"}`: 600, `http_requests_total{service="checkout",code="500"}`: 1,
	})
	for _, server := range []*string{&c.edge, &c.model, &c.spare, &c.alertmanager, &c.hook, &c.actuator} {
		*server = "http://" + freeAddr(t)
	}
	for _, key := range []string{"model.key", "spare.key", "hook.key", "scaler.key"} {
		c.write(t, key, canary)
	}
	c.write(t, "tokens.yaml", "alice: "+strings.Repeat("a", 20)+"\n")
	c.write(t, "rules.yaml", "rules:\n  - {service: checkout, propose: {action: restart}}\n")
	c.program(t, "restart.sh", "exit 0")
	c.program(t, "status.sh", `echo '{"known":false,"state":{}}'`)
	return c
}

func (c *clinic) program(t *testing.T, name, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// configure writes configuration and documents with the servers in them.
func (c *clinic) configure(t *testing.T, policies string) {
	t.Helper()
	c.words = []string{
		c.url, "http://PROM", c.edge, "http://EDGE", c.model, "http://MODEL", c.spare, "http://SPARE",
		c.alertmanager, "http://ALERTMANAGER", c.hook, "http://HOOK", c.actuator, "http://ACTUATOR", c.dir, "DIR",
	}
	fill := strings.NewReplacer("POLICIES", policies, "PROM", c.url, "EDGE", c.edge, "MODEL", c.model, "SPARE", c.spare,
		"ALERTMANAGER", c.alertmanager, "HOOK", c.hook, "ACTUATOR", c.actuator, "../", c.dir+"/")
	c.write(t, "setpoint.yaml", fill.Replace(doctorConfig))
	slo, _, _ := strings.Cut(sloDocument("checkout", "1d", "bad",
		`http_requests_total{service="checkout",code="500"}`, `http_requests_total{service="checkout"}`), "---\n")
	c.write(t, "slo/checkout.yaml", slo+fill.Replace(doctorActions))
}

// command runs a command line on the clinic's configuration.
func (c *clinic) command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{out: &stdout, err: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	code = a.run(append(args, "--config", filepath.Join(c.dir, "setpoint.yaml")))
	return code, stdout.String(), stderr.String()
}

// examine runs the doctor.
func (c *clinic) examine(t *testing.T, args ...string) (int, doctorReport) {
	t.Helper()
	code, out, errs := c.command(t, append([]string{"doctor", "-o", "json"}, args...)...)
	var r doctorReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s %s", err, out, errs)
	}
	if strings.Contains(out+errs, canary) || strings.Contains(out, "of-a-secret-path") {
		t.Errorf("a secret is shown: %s", out)
	}
	return code, r
}

// golden compares the table of a report with the file of that name.
func (c *clinic) golden(t *testing.T, name string, r doctorReport) {
	t.Helper()
	for i := range r.Items {
		item := &r.Items[i]
		item.Subject, item.Detail, item.Remedy = c.steady(item.Subject), c.steady(item.Detail), c.steady(item.Remedy)
	}
	var out bytes.Buffer
	if err := (&app{out: &out}).showDoctor(r, formatTable); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "doctor", name+".golden")
	if *updateGoldens {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want, +got); -update writes it after a change on purpose:\n%s", file, diff)
	}
	for _, i := range r.Items {
		checkRemedy(t, i)
	}
}

// loopback serves a handler until the test ends.
func loopback(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func always(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// TestDoctorHealthy: everything is there, an agent runs beside it, and the dry
// run leaves no effect.
func TestDoctorHealthy(t *testing.T) {
	c := newClinic(t, 0)
	actuator, err := executetest.NewActuator(executetest.ActuatorOptions{
		Secret: []byte(canary), Dedup: true, State: map[string]any{"replicas": 5}, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.actuator = loopback(t, actuator.ServeHTTP)
	c.edge = c.url
	c.model, c.spare = loopback(t, honestModel(honest)), loopback(t, honestModel(honest))
	c.alertmanager, c.hook = loopback(t, labpager.New(time.Now).Handler().ServeHTTP), loopback(t, http.NotFound)
	c.configure(t, "")
	if code, _, errs := c.command(t, "ledger", "init"); code != exitFine {
		t.Fatal(errs)
	}
	c.run(t)

	code, r := c.examine(t, "--dry-run")
	if code != exitFine || r.Counts[resultFail]+r.Counts[resultWarn] != 0 {
		t.Errorf("exit %d, %v", code, r.Counts)
	}
	c.golden(t, "healthy", r)
	for _, rec := range actuator.Journal() {
		if !rec.DryRun || rec.Applied || !rec.Signed {
			t.Errorf("sent %+v", rec)
		}
	}
	if n := len(actuator.Journal()); n != 2 {
		t.Errorf("%d requests, want the dry run twice", n)
	}
	if _, _ = c.examine(t, "--only", "executors"); len(actuator.Journal()) != 2 {
		t.Error("an actuator was sent something without --dry-run")
	}
}

// run has an agent run until the test ends.
func (c *clinic) run(t *testing.T) {
	t.Helper()
	a := &app{out: &bytes.Buffer{}, err: discard{}, getenv: func(string) string { return "" }, now: time.Now, configPath: filepath.Join(c.dir, "setpoint.yaml")}
	s, err := a.site()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.runAgent(ctx, s, false) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
	ready := func() bool { return lookAtAgent(t.Context(), newAgent(s.cfg.Web.Socket)).ready }
	for end := time.Now().Add(20 * time.Second); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the agent is not ready")
		}
	}
}

// TestDoctorDead: nothing listens, or answers with 500, and the files are not
// there.
func TestDoctorDead(t *testing.T) {
	c := newClinic(t, 0)
	c.url = "http://" + freeAddr(t)
	c.edge = loopback(t, always(500, "text/html", "<h1>oh no</h1>"))
	c.alertmanager = loopback(t, always(500, "application/json", `"broken"`))
	c.configure(t, "path: policy/")
	c.write(t, "policy/gate.rego", "package setpoint.gate\n\nauto contains \"x\" if { input.nothing.such }\n")
	c.write(t, "tokens.yaml", "alice: short\n")
	for _, file := range []string{"spare.key", "scaler.key", "rules.yaml", "restart.sh"} {
		if err := os.Remove(filepath.Join(c.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	code, r := c.examine(t)
	if code != exitError {
		t.Errorf("exit %d", code)
	}
	c.golden(t, "dead", r)
}

// TestDoctorLying: everything answers, and none of it is true.
func TestDoctorLying(t *testing.T) {
	c := newClinic(t, 3*time.Minute)
	engine := c.engine.Handler()
	c.url = loopback(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "time()" {
			ahead := time.Now().Add(10 * time.Minute).Unix()
			always(200, "application/json", fmt.Sprintf(`{"status":"success","data":{"resultType":"scalar","result":[%d,"%d"]}}`, ahead, ahead))(w, r)
			return
		}
		engine.ServeHTTP(w, r)
	})
	c.edge = loopback(t, always(200, "application/json", `{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}}`))
	c.model, c.spare = loopback(t, honestModel(prose)), loopback(t, honestModel(toolsOnly))
	c.alertmanager = loopback(t, always(200, "text/html", "<html>please log in</html>"))
	plainServer := loopback(t, http.NotFound)
	c.hook = "https://" + strings.TrimPrefix(plainServer, "http://")
	c.actuator = loopback(t, always(200, "application/json", `{"known":true,"result":"applied","state":{"replicas":5}}`))
	c.configure(t, "path: policy/")
	c.write(t, "policy/gate.rego", aPolicy)
	c.write(t, "policy/gate_test.rego", "package setpoint.gate_test\n\ntest_never if { 1 == 2 }\n")
	c.write(t, "rules.yaml", "rules:\n  - {service: checkout, propose: {action: rollback}}\n")
	c.program(t, "status.sh", `echo '{"known":true,"result":"applied"}'`)
	if err := os.Chmod(filepath.Join(c.dir, "hook.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := c.command(t, "ledger", "init"); code != exitFine {
		t.Fatal(errs)
	}
	c.flip(t)
	freeze := ledger.Freeze{ID: "f1", By: "os:alice", Reason: "looking", At: time.Now()}
	if err := (&app{now: time.Now}).freezeDir(filepath.Join(c.dir, "setpoint.freeze")).Write(freeze); err != nil {
		t.Fatal(err)
	}
	c.socket(t, `setpoint_build_info{goversion="go1",revision="0123456789abcdef",version="v0.0.1"} 1`)
	code, r := c.examine(t, "--dry-run")
	if code != exitError {
		t.Errorf("exit %d", code)
	}
	c.golden(t, "lying", r)
}

// flip changes one byte of the ledger's first entry.
func (c *clinic) flip(t *testing.T) {
	t.Helper()
	path := filepath.Join(c.dir, "setpoint.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(actor()))
	if at < 0 {
		t.Fatal("the first entry does not name who made it")
	}
	data[at+len("os:")] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// socket is an agent that is not ready, of another version.
func (c *clinic) socket(t *testing.T, metrics string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(c.dir, "setpoint.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			fmt.Fprintln(w, metrics)
		case "/-/ready":
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "Setpoint is not ready: the policy does not load")
		default:
			fmt.Fprint(w, "{}")
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}

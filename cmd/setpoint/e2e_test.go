package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// TestEndToEnd runs the built agent against the real Prometheus, which scrapes
// a service that really degrades, the real Alertmanager, and an
// OpenAI-compatible server on loopback. What happened is read from the
// actuator's own journal and from Alertmanager, never from the agent's word.
func TestEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("about a minute of real time")
	}
	w := newE2E(t)
	w.agent("ledger", "init")
	w.agent("validate")
	stop := w.run()

	w.eventually("met and held", 90*time.Second, func() bool { return w.service()["state"] == "met" && w.warm() })
	w.broken.Store(true)
	// The model hands over first: a person is told, and nothing is done.
	w.eventually("the page", 60*time.Second, func() bool { return len(w.alerts()) == 1 })
	if n := len(w.actuator.Journal()); n != 0 {
		t.Fatalf("%d requests although the model handed over", n)
	}
	// In the next window it proposes the rollback.
	w.eventually("one effect", 60*time.Second, func() bool { return len(w.actuator.Effects()) > 0 })
	w.eventually("the outcome", 60*time.Second, func() bool { return w.decision()["outcome"] == "recovered" })
	w.eventually("the alert's end", 60*time.Second, func() bool { return len(w.alerts()) == 0 })
	if got := w.service()["state"]; got != "met" {
		t.Errorf("state = %v, want met", got)
	}
	stop()

	effects := w.actuator.Effects()
	if len(effects) != 1 || len(w.actuator.Journal()) != 1 {
		t.Fatalf("journal: %d requests, %d effects, want one", len(w.actuator.Journal()), len(effects))
	}
	d := w.decision()
	if effects[0].Digest == "" || effects[0].Digest != d["digest"] || effects[0].Key != d["key"] {
		t.Errorf("journal has digest %s under %s, the gate decided %v under %v", effects[0].Digest, effects[0].Key, d["digest"], d["key"])
	}
	if d["verdict"] != "auto" || d["effect"] != "applied" || !effects[0].Signed {
		t.Errorf("decision = %v, signed = %v", d, effects[0].Signed)
	}
	if n := w.asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times, want once per window: 2", n)
	}
	if n := w.opened.Load(); n != 1 {
		t.Errorf("%d alerts were seen, want one", n)
	}
	w.agent("ledger", "verify")
}

// e2e is the world around the agent.
type e2e struct {
	t                        *testing.T
	dir, bin                 string
	prom, alertmanager       string
	actuator                 *executetest.Actuator
	broken                   atomic.Bool
	asked, opened, firstSeen atomic.Int64
	lastAlert                string
}

func newE2E(t *testing.T) *e2e {
	t.Helper()
	promBin, amBin := need(t, "prometheus"), need(t, "prometheus-alertmanager")
	w := &e2e{t: t, dir: t.TempDir(), bin: filepath.Join(t.TempDir(), "setpoint")}
	if out, err := exec.Command("go", "build", "-o", w.bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	secret := []byte("0123456789abcdef0123456789abcdef")
	var err error
	w.actuator, err = executetest.NewActuator(executetest.ActuatorOptions{
		Secret: secret, State: map[string]any{"version": "v42", "previousVersion": "v41"}, Now: time.Now,
		OnApply: func(e execute.Envelope) {
			if e.Action == "rollback" && e.Parameters["version"] == "v41" {
				w.broken.Store(false)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	actuator := httptest.NewServer(w.actuator)
	model := httptest.NewServer(http.HandlerFunc(w.model))
	shop := httptest.NewServer(w.shop())
	t.Cleanup(actuator.Close)
	t.Cleanup(model.Close)
	t.Cleanup(shop.Close)

	w.prom = w.server(promBin, "prometheus.yml", fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]\n", shop.Listener.Addr()),
		"--storage.tsdb.path="+filepath.Join(w.dir, "tsdb"))
	w.alertmanager = w.server(amBin, "alertmanager.yml", "route: {receiver: none}\nreceivers: [{name: none}]\n",
		"--storage.path="+filepath.Join(w.dir, "am"), "--cluster.listen-address=")
	w.write("actuator.key", string(secret))
	w.write("checkout.yaml", strings.ReplaceAll(e2eDocuments, "ACTUATOR", actuator.URL))
	w.write("setpoint.yaml", strings.NewReplacer("PROM", w.prom, "LISTEN", freeAddr(t), "ALERTMANAGER", w.alertmanager, "MODEL", model.URL, "ACTUATOR", actuator.URL).Replace(e2eConfig))
	return w
}

const e2eConfig = `documents: [checkout.yaml]
sweep: {interval: 1s, jitter: 0.1}
sources: [{name: main, url: "PROM", maxSampleAge: 5s, queriesPerSecond: 200, maxConcurrency: 4}]
proposer:
  provider: openai
  endpoints: [{name: loopback, baseURL: "MODEL/v1", model: scripted, timeout: 5s}]
limits: {maxMode: auto, minSpacing: 2s, effectsPerServicePerHour: 6}
receivers: [{name: oncall, alertmanager: {url: "ALERTMANAGER"}}]
approvers: {"@oncall": ["os:nobody"]}
executors: {webhook: {allow: ["ACTUATOR/"]}}
secrets: {actuator: actuator.key}
web: {listen: LISTEN, socket: setpoint.sock}
`

const e2eDocuments = `apiVersion: openslo/v1
kind: SLO
metadata: {name: availability}
spec:
  service: checkout
  indicator:
    metadata: {name: availability}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: 'shop_http_requests_total{code!~"5.."}'}}}
        total: {metricSource: {type: Prometheus, spec: {query: shop_http_requests_total}}}
  timeWindow: [{duration: 1h, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: checkout}
spec:
  service: checkout
  owner: team-shop
  mode: auto
  actionWindow: 10s
  holdFor: 5s
  unknownFor: 10s
  escalateWithin: 20s
  approvers: ["@oncall"]
  objectives:
    availability: {judgeWindow: 5s, minEvents: 10, burnRates: [{short: 5s, long: 20s, factor: 10, page: true}]}
  actions:
    - name: rollback
      uses: webhook.post
      target: {url: "ACTUATOR/release", statusURL: "ACTUATOR/release", secret: actuator}
      class: auto
      reversal: restore
      settle: 2s
      cooldown: 5s
      timeout: 5s
      maxLateness: 1s
      parameters:
        version: {type: string, fromState: previousVersion}
  escalation: {receivers: [oncall]}
`

// need finds a server's program. Outside CI a machine without it skips.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not in PATH: install Debian's package %s", name, name)
	}
	t.Skipf("%s is not in PATH: install Debian's package %s to run this test", name, name)
	return ""
}

// shop serves requests to itself at a steady rate and counts them; while it is
// broken, three of ten fail.
func (w *e2e) shop() http.Handler {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shop_http_requests_total", Help: "Requests."}, []string{"code"})
	registry.MustRegister(requests)
	requests.WithLabelValues("200")
	requests.WithLabelValues("500")
	done := make(chan struct{})
	w.t.Cleanup(func() { close(done) })
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
				code := "200"
				if w.broken.Load() && i%10 < 3 {
					code = "500"
				}
				requests.WithLabelValues(code).Inc()
			}
		}
	}()
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// model hands over at first, and proposes the rollback afterwards.
func (w *e2e) model(rw http.ResponseWriter, _ *http.Request) {
	answer := `{"action":"rollback","parameters":{"version":"v41"},"rationale":"one release ago"}`
	if w.asked.Add(1) == 1 {
		answer = `{"action":"escalate","parameters":{},"rationale":"not sure"}`
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{
		"id": "1", "object": "chat.completion", "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": answer}}},
	})
}

// server starts one of the real servers and returns its URL; it ends with the
// test, by its process id.
func (w *e2e) server(bin, file, conf string, args ...string) string {
	w.t.Helper()
	addr := freeAddr(w.t)
	w.write(file, conf)
	cmd := exec.Command(bin, append([]string{"--config.file=" + filepath.Join(w.dir, file), "--web.listen-address=" + addr, "--log.level=warn"}, args...)...)
	w.start(cmd, filepath.Base(bin))
	url := "http://" + addr
	w.eventually(bin+" ready", 30*time.Second, func() bool {
		resp, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return url
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (w *e2e) start(cmd *exec.Cmd, name string) {
	w.t.Helper()
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			w.t.Logf("%s said:\n%s", name, text)
		}
		_ = log.Close()
	})
}

// run starts the agent and returns how to stop it as systemd does.
func (w *e2e) run() (stop func()) {
	cmd := exec.Command(w.bin, "run")
	w.start(cmd, "setpoint")
	return func() {
		w.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			w.t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("the agent ended with %v", err)
		}
	}
}

func (w *e2e) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// agent runs one command beside the agent.
func (w *e2e) agent(args ...string) string {
	w.t.Helper()
	cmd := exec.Command(w.bin, args...)
	cmd.Dir = w.dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("setpoint %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

func (w *e2e) items(args ...string) []map[string]any {
	w.t.Helper()
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Items      []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(w.agent(append(args, "-o", "json")...)), &list); err != nil {
		w.t.Fatal(err)
	}
	if list.APIVersion != "setpoint.dev/v1alpha1" {
		w.t.Fatalf("apiVersion = %q", list.APIVersion)
	}
	return list.Items
}

func (w *e2e) service() map[string]any {
	if items := w.items("get", "services"); len(items) == 1 {
		return items[0]
	}
	return nil
}

// decision is the one that claimed.
func (w *e2e) decision() map[string]any {
	for _, d := range w.items("get", "decisions") {
		if d["effect"] != "none" {
			return d
		}
	}
	return nil
}

// warm: the long window is covered, so that auto is possible, and the
// documents have had their holdFor.
func (w *e2e) warm() bool {
	seen := w.firstSeen.Load()
	if seen == 0 {
		w.firstSeen.Store(time.Now().Unix())
		return false
	}
	return time.Since(time.Unix(seen, 0)) > 25*time.Second
}

// alerts are the open ones that Alertmanager holds.
func (w *e2e) alerts() []string {
	w.t.Helper()
	resp, err := http.Get(w.alertmanager + "/api/v2/alerts?filter=alertname%3D%22SetpointEscalation%22")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []struct {
		Fingerprint string
		EndsAt      time.Time
		Labels      map[string]string
	}
	if err := json.Unmarshal(body, &list); err != nil {
		w.t.Fatalf("%v: %s", err, body)
	}
	var open []string
	for _, a := range list {
		if a.EndsAt.Before(time.Now()) {
			continue
		}
		open = append(open, a.Fingerprint)
		if a.Fingerprint != w.lastAlert {
			w.lastAlert = a.Fingerprint
			w.opened.Add(1)
		}
		if a.Labels["service"] != "checkout" || a.Labels["episode"] == "" || a.Labels["severity"] == "" {
			w.t.Errorf("labels = %v", a.Labels)
		}
	}
	return open
}

func (w *e2e) eventually(what string, within time.Duration, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	w.t.Fatalf("no %s within %s", what, within)
}

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// tellingSite is a site with a receiver of every kind at that address, and a
// secret in every file that can hold one.
func tellingSite(t *testing.T, base string) site {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"setpoint.yaml": fmt.Sprintf(`documents: [slo/]
sources:
  - {name: main, url: %[1]q, http: {basic_auth: {username: u, password_file: source.key}}}
ledger: {postgres: {dsnFile: dsn}}
receivers:
  - {name: am, alertmanager: {url: %[1]q}}
  - {name: hook, webhook: {url: "%[1]s/page", secretFile: hook.key}}
  - {name: pd, pagerduty: {routingKeyFile: pd.key, url: "%[1]s/v2/enqueue", webhookSecretFile: pd.hook}}
  - {name: chat, slack: {channel: C0000OPS00}}
  - {name: siren, command: {argv: [./siren.sh]}}
slack: {apiURL: "%[1]s/api/", botTokenFile: bot.token, transport: http, signingSecretFile: signing.secret, team: T0000LAB00, channel: C0000OPS00}
secrets: {scaler: scaler.key}
web: {listen: "127.0.0.1:8321", externalURL: "https://setpoint.example/ops/", tokensFile: tokens.yaml}
`, base),
		"source.key": "canary-of-the-source", "hook.key": "canary-of-the-hook", "pd.key": "canary-of-pagerduty\n", "pd.hook": "canary-of-its-hook", "bot.token": "xoxb-canary-of-slack",
		"signing.secret": "canary-that-signs", "scaler.key": "canary-of-an-actuator\n\n", "tokens.yaml": "alice: canary-of-alice-and-more\nbob: canary-of-bob-and-more\n",
		"dsn": "postgres://setpoint:canary-of-postgres@db/setpoint\n", "siren.sh": "#!/bin/sh\ncat > heard\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{getenv: func(string) string { return "" }, now: time.Now, configPath: filepath.Join(dir, "setpoint.yaml")}
	s, err := a.site()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSecretValues: what no page may show is every secret that is configured.
func TestSecretValues(t *testing.T) {
	got := tellingSite(t, "http://127.0.0.1:1").secretValues()
	for _, want := range []string{
		"canary-of-the-source", "canary-of-the-hook", "canary-of-pagerduty", "canary-of-its-hook", "xoxb-canary-of-slack", "canary-that-signs",
		"canary-of-an-actuator", "canary-of-alice-and-more", "canary-of-bob-and-more", "canary-of-postgres",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

func TestDSNPasswords(t *testing.T) {
	cases := map[string][]string{
		"postgres://u:p%40ss@h/d":                 {"p@ss"},
		"host=h user=u password=secret dbname=d":  {"secret"},
		"host=h password='secret' dbname=d":       {"secret"},
		"host=h user=u dbname=d":                  nil,
		"postgres://h/d?sslmode=disable":          nil,
		"postgres://u@h/d":                        nil,
		"postgres://%zz":                          nil,
		"service=main passfile=/etc/pg/pass-file": nil,
	}
	for dsn, want := range cases {
		if diff := cmp.Diff(want, dsnPasswords(dsn)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dsn, diff)
		}
	}
}

// TestReceiversOfEveryKind: the agent makes all five, and none of them is told a
// secret; who only looks asks for silences and needs no secret.
func TestReceiversOfEveryKind(t *testing.T) {
	var sent strings.Builder
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		fmt.Fprintf(&sent, "%s %v\n", r.URL.Path, r.PostForm["blocks"])
		body := make([]byte, 1<<20)
		n, _ := r.Body.Read(body)
		sent.Write(body[:n])
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v2/enqueue" {
			w.WriteHeader(http.StatusAccepted)
		}
		_, _ = w.Write([]byte(`{"ok":true,"channel":"C0000OPS00","ts":"1.1"}`))
	}))
	t.Cleanup(srv.Close)
	s := tellingSite(t, srv.URL)
	told, silencers, err := s.receivers(telling{now: time.Now, send: true, installation: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	p := escalate.Page{
		ID: "e1", Service: "checkout", Reason: escalate.CannotAct, Now: escalate.CannotAct, Severity: "critical", Since: time.Now(),
		Summary: "checkout: canary-of-an-actuator", Text: "a label says canary-of-pagerduty\nand canary-of-postgres",
	}
	p.Lead.Why = "why: canary-of-alice-and-more"
	refs, each := map[string]string{}, []string{}
	for _, r := range told {
		names = append(names, r.Name())
		before := sent.Len()
		ref, err := r.Send(t.Context(), p, "")
		if err != nil {
			t.Errorf("%s: %v", r.Name(), err)
		}
		refs[r.Name()] = ref
		each = append(each, sent.String()[before:])
	}
	if diff := cmp.Diff([]string{"am", "hook", "pd", "chat", "siren"}, names); diff != "" || len(silencers) != 1 {
		t.Errorf("%d silencers; -want +got:\n%s", len(silencers), diff)
	}
	if refs["pd"] != "setpoint/abc/e1" || !strings.HasPrefix(refs["chat"], "C0000OPS00/1.1/") {
		t.Errorf("refs %v", refs)
	}
	heard, err := os.ReadFile(filepath.Join(filepath.Dir(s.file), "heard"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.ReplaceAll(sent.String(), `"routing_key":"canary-of-pagerduty"`, "") + string(heard)
	if strings.Contains(all, "canary") || strings.Count(all, "secret") < 15 {
		t.Errorf("sent:\n%s", all)
	}

	each[len(each)-1] = string(heard)
	for n, text := range each {
		if !strings.Contains(text, "https://setpoint.example/ops") || strings.Contains(text, "127.0.0.1:8321") {
			t.Errorf("%s links elsewhere than to web.externalURL:\n%s", names[n], text)
		}
	}

	if err := os.Remove(filepath.Join(filepath.Dir(s.file), "hook.key")); err != nil {
		t.Fatal(err)
	}
	if _, silencers, err := s.receivers(telling{now: time.Now}); err != nil || len(silencers) != 1 {
		t.Errorf("who only looks: %d silencers, %v", len(silencers), err)
	}
	if _, _, err := s.receivers(telling{now: time.Now, send: true}); err == nil || !strings.Contains(err.Error(), "hook.key") {
		t.Errorf("a secret is missing: %v", err)
	}
}

// TestPagerDuties: acknowledgements are taken for receivers with a webhook secret,
// which is read when it is needed.
func TestPagerDuties(t *testing.T) {
	s := tellingSite(t, "http://127.0.0.1:1")
	s.cfg.Receivers = append(s.cfg.Receivers, config.Receiver{Name: "other", PagerDuty: &config.PagerDuty{RoutingKeyFile: "x"}})
	hooks := s.pagerDuties()
	if len(hooks) != 1 || hooks[0].Receiver != "pd" {
		t.Fatalf("got %+v", hooks)
	}
	if secret, err := hooks[0].Secret(); err != nil || secret != "canary-of-its-hook" {
		t.Errorf("got %q, %v", secret, err)
	}
	file := filepath.Join(filepath.Dir(s.file), "pd.hook")
	for text, want := range map[string]string{"rotated\n": "rotated", "": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if secret, err := hooks[0].Secret(); secret != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, secret, err)
		}
	}
}

// TestInstallation: a ledger has one name for ever, and two have two.
func TestInstallation(t *testing.T) {
	names := map[string]bool{}
	for range 2 {
		file := filepath.Join(t.TempDir(), "setpoint.db")
		if err := sqlite.Init(file, "os:root"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			store, err := sqlite.Open(file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			names[installation(t.Context(), store)] = true
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(names) != 2 || names[""] {
		t.Errorf("got %v, want two names", names)
	}
	if got := installation(t.Context(), nil); got != "" {
		t.Errorf("no ledger has the name %q", got)
	}
}

// TestDoctorReceiverKinds: nothing is sent and nothing is run.
func TestDoctorReceiverKinds(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	asked := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(srv.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	key, empty := write("key", "k", 0o600), write("empty", "\n", 0o600)
	ran := filepath.Join(dir, "ran")
	program := write("siren.sh", "#!/bin/sh\ntouch "+ran+"\n", 0o700)
	pd := func(url, key, hook string) checkItem {
		return pagerdutyItem(t.Context(), config.Receiver{Name: "pd", PagerDuty: &config.PagerDuty{URL: url, RoutingKeyFile: key, WebhookSecretFile: hook}})
	}
	run := func(argv ...string) checkItem {
		return commandItem(config.Receiver{Name: "siren", Command: &config.Command{Argv: argv}})
	}
	tls := httptest.NewTLSServer(nil)
	t.Cleanup(tls.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	checkVerdicts(t, map[string]verdict{
		"pagerduty":     {"it connects, and no event is sent", pd(srv.URL, key, ""), resultOK, []string{"accepts a connection; no page was sent"}},
		"hook":          {"with a webhook secret too", pd(srv.URL, key, key), resultOK, nil},
		"no key":        {"nothing could be sent", pd(srv.URL, filepath.Join(dir, "none"), ""), resultFail, []string{"routingKeyFile", "no page reaches anybody"}},
		"empty key":     {"nor with an empty one", pd(srv.URL, empty, ""), resultFail, []string{"is empty"}},
		"empty hook":    {"nobody's acknowledgement would count", pd(srv.URL, key, empty), resultFail, []string{"webhookSecretFile"}},
		"pd is down":    {"nobody is there", pd(closed.URL, key, ""), resultFail, []string{"no connection"}},
		"pd's TLS":      {"who answers is not known", pd(tls.URL, key, ""), resultFail, []string{"certificate"}},
		"pd speaks not": {"no TLS there", pd("https://127.0.0.1:"+port, key, ""), resultFail, []string{"TLS"}},
		"program":       {"it is found, and not run", run(program, "--loud"), resultOK, []string{program + " can be run; it was not"}},
		"no program":    {"there is none", run(program + "x"), resultFail, []string{"cannot be found", "argv of receiver siren"}},
		"not runnable":  {"nor one that can be run", run(key), resultFail, []string{"executable"}},
		"in PATH":       {"a bare name is looked up", run("sh"), resultOK, []string{"/"}},
		"not in PATH":   {"and not found", run("setpoint-no-such-program"), resultFail, []string{"cannot be found"}},
	})
	if _, err := os.Stat(ran); err == nil || asked {
		t.Errorf("the program ran: %t; something was sent: %t", err == nil, asked)
	}
}

package alertmanager_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// server is a real Alertmanager on loopback with one webhook receiver.
type server struct {
	url string
	// got are the bodies that it sent to its receiver.
	got chan []byte
}

// listening is the line in which Alertmanager says on which port it is.
var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

func start(t *testing.T) server {
	t.Helper()
	binary, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		const how = "no prometheus-alertmanager in PATH: apt-get install prometheus-alertmanager"
		if os.Getenv("CI") != "" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	s := server{got: make(chan []byte, 100)}
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.got <- body
	}))
	t.Cleanup(sink.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	conf := fmt.Sprintf("route: {receiver: sink, group_by: [alertname, episode], group_wait: 10ms, group_interval: 200ms, repeat_interval: 1h}\nreceivers: [{name: sink, webhook_configs: [{url: %q}]}]\n", sink.URL)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "--config.file="+file, "--storage.path="+dir,
		"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=", "--log.format=logfmt")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.url = "http://" + address(t, stderr)
	return s
}

// address waits for the line that names the port, and lets the rest flow.
func address(t *testing.T, stderr io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		var seen []string
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
				_, _ = io.Copy(io.Discard, stderr)
				return
			}
			seen = append(seen, lines.Text())
		}
		found <- "\n" + strings.Join(seen, "\n")
	}()
	select {
	case a := <-found:
		if strings.HasPrefix(a, "\n") {
			t.Fatalf("alertmanager ended:%s", a)
		}
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("alertmanager did not listen within 20 s")
	}
	return ""
}

// notification waits for what Alertmanager sends on until it satisfies ok.
func (s server) notification(t *testing.T, what string, ok func(message) bool) []byte {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case body := <-s.got:
			var m message
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if ok(m) {
				return body
			}
		case <-deadline:
			t.Fatalf("alertmanager did not tell its receiver: %s", what)
		}
	}
}

type message struct {
	Status string
	Alerts []struct {
		Status              string
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
		Fingerprint         string
	}
}

// alerts are those that Alertmanager's own API shows.
func (s server) alerts(t *testing.T) []apiAlert {
	t.Helper()
	var as []apiAlert
	s.call(t, http.MethodGet, "/api/v2/alerts", "", &as)
	return as
}

type apiAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	Status              struct {
		State      string
		SilencedBy []string
	}
}

func (s server) call(t *testing.T, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: HTTP %d %s %v", method, path, resp.StatusCode, b, err)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
}

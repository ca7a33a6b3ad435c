package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
)

// standIn runs one stand-in and gives its URL; it ends with the test.
func standIn(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	cmd := rootCommand(strings.NewReader(""), in, io.Discard)
	cmd.SetArgs(args)
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = in.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with %v", args[0], err)
		}
	})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	url := strings.TrimSpace(string(line[:n]))
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("%s says %q, want its URL", args[0], url)
	}
	return url
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestFakepagerHoldsPages(t *testing.T) {
	url := standIn(t, "fakepager")
	body, err := json.Marshal(map[string]any{"version": "4", "status": "firing", "alerts": []any{map[string]any{
		"status": "firing", "labels": map[string]string{"service": "catalog", "reason": "blind"}, "fingerprint": "f",
		"startsAt": time.Now(), "annotations": map[string]string{"summary": "nobody can see"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if code, text := call(t, "POST", url+"/page", string(body)); code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	if code, text := call(t, "GET", url+"/pages", ""); code != http.StatusOK || !strings.Contains(text, `"blind"`) {
		t.Errorf("HTTP %d: %s", code, text)
	}
}

func TestFakemodelSaysWhatItIs(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := standIn(t, "fakemodel", "--rules", rules)
	if code, text := call(t, "GET", url+"/v1/models", ""); code != http.StatusOK || !strings.Contains(text, "rules-file") {
		t.Errorf("HTTP %d: %s", code, text)
	}
}

func TestEffectdJournals(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	url := standIn(t, "effectd", "--journal", journal, "--state", `{"replicas": 3}`, "--mode", "no-op")
	if code, text := call(t, "POST", url+"/x", `{"key":"a:1-10","digest":"d","service":"a","action":"scale","parameters":{}}`); code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	if _, text := call(t, "GET", url+"/x?key=a:1-10", ""); !strings.Contains(text, `"no-op"`) || !strings.Contains(text, `"replicas":3`) {
		t.Errorf("status %s", text)
	}
	rs, err := executetest.ReadJournal(journal)
	if err != nil || len(rs) != 1 || rs[0].Key != "a:1-10" || rs[0].Applied {
		t.Errorf("journal = %+v, %v", rs, err)
	}
}

// TestMistakesSayWhatToDo: a wrong command line ends at once.
func TestMistakesSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	cases := map[string]struct {
		args []string
		want string
	}{
		"Everywhere":   {[]string{"fakepager", "--listen", "0.0.0.0:0"}, "only an address of loopback"},
		"NoHost":       {[]string{"fakepager", "--listen", ":9999"}, "only an address of loopback"},
		"NamedHost":    {[]string{"fakepager", "--listen", "localhost:9999"}, "only an address of loopback"},
		"NoPort":       {[]string{"fakepager", "--listen", "127.0.0.1"}, "write host:port"},
		"NoJournal":    {[]string{"effectd"}, "--journal is required"},
		"BadMode":      {[]string{"effectd", "--journal", filepath.Join(dir, "j"), "--mode", "sometimes"}, `unknown word "sometimes"`},
		"BadState":     {[]string{"effectd", "--journal", filepath.Join(dir, "j"), "--state", "3"}, "want a JSON object"},
		"NoRules":      {[]string{"fakemodel", "--rules", filepath.Join(dir, "absent")}, "--rules"},
		"NoAgent":      {[]string{"demo", "--setpoint", filepath.Join(dir, "setpoint")}, "make build"},
		"NoRoot":       {[]string{"demo", "--setpoint", os.Args[0], "--root", dir}, "holds no slo/ and evals/"},
		"Argument":     {[]string{"demo", "now"}, `unexpected argument "now"`},
		"Flag":         {[]string{"demo", "--fast"}, "setpoint-lab demo --help"},
		"NoSuchAction": {[]string{"show"}, `unexpected argument "show"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := rootCommand(strings.NewReader(""), &out, &out)
			cmd.SetArgs(tc.args)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNullIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if terminal(null) != nil || coloured(null) {
		t.Error("the null device is taken for a terminal")
	}
	if terminal(strings.NewReader("y\n")) != nil {
		t.Error("a reader is taken for a terminal")
	}
}

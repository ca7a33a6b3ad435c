package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestMain lets the test's own binary be setpoint-lab, so that a test can have
// processes to kill.
func TestMain(m *testing.M) {
	if os.Getenv("SETPOINT_LAB_AS_PROCESS") != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// process runs setpoint-lab as a process of its own; kill is kill -9. It gives
// the first lines of standard output, so many.
func process(t *testing.T, lines int, args ...string) (said []string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SETPOINT_LAB_AS_PROCESS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	t.Cleanup(kill)
	in := bufio.NewScanner(out)
	for len(said) < lines && in.Scan() {
		said = append(said, in.Text())
	}
	if len(said) < lines || !strings.HasPrefix(said[0], "http://127.0.0.1:") {
		t.Fatalf("%s says %q, want its URL first", args[0], said)
	}
	return said, kill
}

const doIt = `{"key":"a:1-10","digest":"d","service":"a","action":"scale","parameters":{"replicas":6}}`

// An effect that was announced survives kill -9, and the control path says what
// the journal's file says.
func TestEffectdDoesWhatItAnnouncedAfterAKill(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	args := []string{"effectd", "--journal", journal, "--state", `{"replicas": 3}`, "--control"}
	said, kill := process(t, 1, args...)
	if code, text := call(t, "PUT", said[0]+"/control/mode?delay=50ms&next=1", "late"); code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	if code, text := call(t, "POST", said[0]+"/x", doIt); code != http.StatusAccepted {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	kill()
	said, _ = process(t, 1, args...)
	until(t, func() bool {
		_, text := call(t, "GET", said[0]+"/x?key=a:1-10", "")
		return strings.Contains(text, `"applied"`) && strings.Contains(text, `"replicas":6`)
	})
	if code, text := call(t, "POST", said[0]+"/x", strings.Replace(doIt, `"d"`, `"e"`, 1)); code != http.StatusUnprocessableEntity {
		t.Errorf("another digest: HTTP %d: %s", code, text)
	}
	_, text := call(t, "GET", said[0]+"/control/journal", "")
	var items struct{ Items []executetest.Record }
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		t.Fatal(err)
	}
	rs, err := executetest.ReadJournal(journal)
	if diff := cmp.Diff(rs, items.Items); err != nil || diff != "" || len(rs) != 3 || !rs[2].Conflict {
		t.Errorf("%d records, %v\n%s", len(rs), err, diff)
	}
}

func TestEffectdIsNotControlledUnasked(t *testing.T) {
	url := standIn(t, "effectd", "--journal", filepath.Join(t.TempDir(), "j"))
	for _, method := range []string{"GET", "POST", "PUT"} {
		if code, text := call(t, method, url+"/control/mode", doIt); code != http.StatusNotFound || !strings.Contains(text, "--control") {
			t.Errorf("%s: HTTP %d: %s", method, code, text)
		}
	}
}

// The reply to one request is lost between processes, and the journal tells.
func TestFaultproxyBetweenProcesses(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	actuator, _ := process(t, 1, "effectd", "--journal", journal, "--control")
	proxy, _ := process(t, 2, "faultproxy", "--upstream", strings.TrimPrefix(actuator[0], "http://"),
		"--fault", "drop-reply", "--next", "1", "--control", "127.0.0.1:0")
	control := strings.TrimPrefix(proxy[1], "control ")
	if resp, err := http.Post(proxy[0]+"/x", "application/json", strings.NewReader(doIt)); err == nil {
		_ = resp.Body.Close()
		t.Errorf("the reply came: HTTP %d", resp.StatusCode)
	}
	if code, text := call(t, "POST", proxy[0]+"/x", doIt); code != http.StatusOK {
		t.Errorf("the second: HTTP %d: %s", code, text)
	}
	if code, text := call(t, "PUT", control+"/control/fault", "status,status=500"); code != http.StatusOK {
		t.Fatalf("control: HTTP %d: %s", code, text)
	}
	http.DefaultClient.CloseIdleConnections()
	if code, text := call(t, "POST", proxy[0]+"/x", doIt); code != http.StatusInternalServerError {
		t.Errorf("the third: HTTP %d: %s", code, text)
	}
	_, text := call(t, "GET", control+"/control/log", "")
	if n := strings.Count(text, `"conn":`); n != 3 || !strings.Contains(text, `"fault":"drop-reply"`) {
		t.Errorf("the log has %d connections: %s", n, text)
	}
	rs, err := executetest.ReadJournal(journal)
	if err != nil || len(rs) != 2 || !rs[0].Applied || !rs[1].Applied {
		t.Errorf("the journal holds %+v, %v, want the double effect", rs, err)
	}
}

// until polls a real process.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("not in time")
		case <-time.After(10 * time.Millisecond):
		}
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
		"BadDelay":     {[]string{"effectd", "--journal", filepath.Join(dir, "j"), "--delay", "1s"}, "has no delay"},
		"NoUpstream":   {[]string{"faultproxy"}, "--upstream is required"},
		"BadUpstream":  {[]string{"faultproxy", "--upstream", "127.0.0.1"}, "write host:port"},
		"FarUpstream":  {[]string{"faultproxy", "--upstream", "192.0.2.1:80"}, "--upstream \"192.0.2.1:80\": only an address of loopback"},
		"FarProxy":     {[]string{"faultproxy", "--upstream", "127.0.0.1:1", "--listen", "0.0.0.0:0"}, "--listen \"0.0.0.0:0\": only an address of loopback"},
		"FarControl":   {[]string{"faultproxy", "--upstream", "127.0.0.1:1", "--control", ":0"}, "--control \":0\": only an address of loopback"},
		"BadFault":     {[]string{"faultproxy", "--upstream", "127.0.0.1:1", "--fault", "explode"}, "no such kind"},
		"RefuseNext":   {[]string{"faultproxy", "--upstream", "127.0.0.1:1", "--fault", "refuse", "--next", "2"}, "cannot be counted"},
		"BadNext":      {[]string{"faultproxy", "--upstream", "127.0.0.1:1", "--next", "-1"}, "--next"},
		"BadState":     {[]string{"effectd", "--journal", filepath.Join(dir, "j"), "--state", "3"}, "want a JSON object"},
		"NoRules":      {[]string{"fakemodel", "--rules", filepath.Join(dir, "absent")}, "--rules"},
		"NoAgent":      {[]string{"demo", "--setpoint", filepath.Join(dir, "setpoint")}, "make build"},
		"NoRoot":       {[]string{"demo", "--setpoint", os.Args[0], "--root", dir}, "holds no slo/ and evals/"},
		"Argument":     {[]string{"demo", "now"}, `unexpected argument "now"`},
		"Flag":         {[]string{"demo", "--fast"}, "setpoint-lab demo --help"},
		"FlagTyping":   {[]string{"effectd", "--jornal", "x"}, "unknown flag: --jornal; did you mean --journal?\nRun `setpoint-lab effectd --help`"},
		"FlagOfEval":   {[]string{"eval", "run", "--seed", "3"}, "unknown flag: --seed; did you mean --seeds?"},
		"NoNumber":     {[]string{"eval", "run", "--seeds", "many"}, `--seeds: want a whole number, not "many"`},
		"NoDuration":   {[]string{"effectd", "--delay", "2"}, `--delay: want a duration such as 90s or 5m, not "2"`},
		"NoSuchAction": {[]string{"show"}, `unknown command "show" for "setpoint-lab"` + "\nRun"},
		"Typing":       {[]string{"fakepger"}, `unknown command "fakepger" for "setpoint-lab"; did you mean fakepager?`},
		"EvalTyping":   {[]string{"eval", "rum"}, `unknown command "rum" for "setpoint-lab eval"; did you mean run?`},
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

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	labmodel "github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// diagnose runs the doctor on a folder with these files.
func diagnose(t *testing.T, dir string, files map[string]string, args ...string) (int, doctorReport) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	a := &app{out: &stdout, err: &stderr, getenv: func(string) string { return "" }, now: time.Now}
	code := a.run(append([]string{"doctor", "-o", "json", "--config", filepath.Join(dir, "setpoint.yaml")}, args...))
	var r doctorReport
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s %s", err, stdout.String(), stderr.String())
	}
	for _, i := range r.Items {
		checkRemedy(t, i)
	}
	return code, r
}

// ofCheck are the items of one check.
func ofCheck(r doctorReport, check string) []checkItem {
	var out []checkItem
	for _, i := range r.Items {
		if i.Check == check {
			out = append(out, i)
		}
	}
	return out
}

// TestDoctorLabModel: the stand-in of the lab, configured as its help prints, has
// nothing wrong about it.
func TestDoctorLabModel(t *testing.T) {
	help, err := os.ReadFile(filepath.Join("..", "setpoint-lab", "standins.go"))
	if err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile("# setpoint.yaml: (proposer: .*)").FindSubmatch(help)
	if printed == nil {
		t.Fatal("the help of fakemodel prints no proposer")
	}
	book, err := rules.Load(spec.File{Name: "rules.yaml", Data: []byte("rules: []\n")})
	if err != nil {
		t.Fatal(err)
	}
	url := loopback(t, labmodel.Handler(book).ServeHTTP)
	proposer := strings.NewReplacer("` + model.Name + `", labmodel.Name, "http://127.0.0.1:8000", url, "`,", "").Replace(string(printed[1]))
	for _, reply := range []string{"", "json_schema", "tool", "auto"} {
		t.Run("reply "+reply, func(t *testing.T) {
			text := proposer
			if reply != "" {
				text = strings.Replace(text, "{provider: openai,", "{provider: openai, reply: "+reply+",", 1)
			}
			code, r := diagnose(t, t.TempDir(), map[string]string{
				"setpoint.yaml": "documents: [slo/]\n" + text + "\n", "rules.yaml": "rules: []\n", "slo/README": "none yet\n",
			}, "--only", "model")
			if code != exitFine || r.Counts[resultFail]+r.Counts[resultWarn] != 0 {
				t.Errorf("exit %d: %+v", code, r.Items)
			}
			if got := ofCheck(r, "model/form"); len(got) != 1 || got[0].Result != resultOK {
				t.Errorf("form: %+v", got)
			}
		})
	}
}

func TestDoctorChanges(t *testing.T) {
	now := time.Now()
	line := func(service string, ago time.Duration) string {
		return fmt.Sprintf(`{"time":%q,"service":%q,"what":"deploy","version":"v42"}`+"\n", now.Add(-ago).Format(time.RFC3339), service)
	}
	const site = "documents: [slo/]\nchanges: {file: changes.jsonl}\n"
	cases := map[string]struct {
		reason string
		text   string
		result string
		words  []string
	}{
		"Good":   {"The newest is told.", line("checkout", time.Hour) + line("checkout", 10*time.Minute), resultOK, []string{"10m ago: checkout deploy v42"}},
		"Empty":  {"Nothing was changed of late.", "", resultOK, []string{"no change of the last 7d"}},
		"Broken": {"The bad line is named, and the good ones count.", line("checkout", time.Hour) + "{}\n" + "nonsense\n", resultWarn, []string{"2 lines are left out", "changes.jsonl:2: ", "checkout deploy v42", "change record"}},
		"Other":  {"Nobody is shown a change of a service that is not there.", line("chekout", time.Hour), resultWarn, []string{"no document names the service chekout"}},
	}
	slo, _, _ := strings.Cut(sloDocument("checkout", "1d", "bad", "errors_total", "requests_total"), "---\n")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, r := diagnose(t, t.TempDir(), map[string]string{"setpoint.yaml": site, "slo/checkout.yaml": slo, "changes.jsonl": tc.text}, "--only", "config")
			got := ofCheck(r, "config/changes")
			if len(got) != 1 || got[0].Result != tc.result {
				t.Fatalf("%s\ngot %+v", tc.reason, got)
			}
			for _, w := range tc.words {
				if !strings.Contains(got[0].Detail+" | "+got[0].Remedy, w) {
					t.Errorf("%s\nwant %q in %+v", tc.reason, w, got[0])
				}
			}
		})
	}
	t.Run("Folder", func(t *testing.T) {
		_, r := diagnose(t, t.TempDir(), map[string]string{"setpoint.yaml": site, "slo/checkout.yaml": slo, "changes.jsonl/x": ""}, "--only", "config")
		if got := ofCheck(r, "config/changes"); len(got) != 1 || got[0].Result != resultFail || !strings.Contains(got[0].Detail, "no regular file") {
			t.Errorf("got %+v", got)
		}
	})
	checkVerdicts(t, map[string]verdict{
		"absent": {"nobody writes it", feedVerdict(ofSubject("c"), feedSeen{err: fs.ErrNotExist}), resultWarn, []string{"no such file yet"}},
		"ahead":  {"a clock runs ahead", feedVerdict(ofSubject("c"), feedSeen{now: now, changes: []measure.Change{{At: now.Add(time.Minute), Service: "a", What: "deploy"}}}), resultOK, []string{"60s ahead"}},
		"closed": {"another user's", feedVerdict(ofSubject("c"), feedSeen{bad: 1, said: []string{"the change file cannot be read: open c: permission denied"}}), resultFail, []string{"permission denied"}},
	})
	if got := (&examination{}).changesItems(); got != nil {
		t.Errorf("none is configured: %+v", got)
	}
}

// TestDoctorWay: a secret that everybody on the way can read, or that is too
// short to be cut out, is told of before it is sent.
func TestDoctorWay(t *testing.T) {
	bearer := config.HTTP{HTTPClientConfig: promconfig.HTTPClientConfig{Authorization: &promconfig.Authorization{CredentialsFile: "x"}}}
	headers := config.HTTP{HTTPClientConfig: promconfig.HTTPClientConfig{HTTPHeaders: &promconfig.Headers{Headers: map[string]promconfig.Header{"X-Key": {Files: []string{"x"}}}}}}
	cases := map[string]struct {
		reason string
		url    string
		key    string
		http   config.HTTP
		want   int
	}{
		"Encrypted": {"https.", "https://models.example.com/v1", "k", bearer, 0},
		"Plain":     {"http.", "http://models.example.com/v1", "k", bearer, 2},
		"Header":    {"A header is a credential too.", "http://10.0.0.1/v1", "", headers, 1},
		"Here":      {"Nobody is on the way.", "http://127.0.0.1:8000/v1", "k", bearer, 0},
		"Here6":     {"Nor there.", "http://[::1]:8000/v1", "k", bearer, 0},
		"Localhost": {"Nor there.", "http://localhost:8000/v1", "k", bearer, 0},
		"NoSecret":  {"Nothing to read.", "http://models.example.com/v1", "", config.HTTP{}, 0},
		"LooksSo":   {"A name that only begins so.", "http://localhost.example.com/v1", "k", bearer, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var cfg config.Config
			cfg.Proposer.Endpoints = []config.Endpoint{{Name: "main", BaseURL: tc.url, APIKeyFile: tc.key}}
			cfg.Sources = []config.Source{{Name: "main", URL: tc.url, HTTP: tc.http}}
			got := wayItems(cfg)
			if len(got) != tc.want {
				t.Errorf("%s\ngot %+v", tc.reason, got)
			}
			for _, i := range got {
				checkRemedy(t, i)
			}
		})
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "internal", "propose", "openai", "secrets.go"))
	if err != nil || !strings.Contains(string(source), fmt.Sprintf("minScrubbed = %d\n", minCut)) {
		t.Errorf("keys are cut out from another length on than %d (%v)", minCut, err)
	}
	for key, want := range map[string]int{"short": 1, "1234567\n": 1, "12345678": 0} {
		_, r := diagnose(t, t.TempDir(), map[string]string{
			"setpoint.yaml": `proposer: {provider: openai, endpoints: [{name: main, baseURL: "http://127.0.0.1:1/v1", model: m, apiKeyFile: model.key}]}` + "\n",
			"model.key":     key,
		}, "--only", "config")
		if got := ofCheck(r, "config/key"); len(got) != want || want > 0 && !strings.Contains(got[0].Remedy, "take apiKeyFile of endpoint main out") {
			t.Errorf("key of %d bytes: %+v", len(key), got)
		}
	}
}

func TestUnknownGroups(t *testing.T) {
	for word, want := range map[string]string{"modl": "model", "policy": "policies", "exec": "executors", "sorces": "sources", "web": "", "zz": ""} {
		got := unknownGroups([]string{word}, true)
		if meant := strings.Contains(got, "did you mean "+want+"?"); meant != (want != "") || (got == "") != (word == "web") {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	if unknownGroups(nil, true) == "" || unknownGroups(nil, false) != "" {
		t.Error("an empty --only is refused, none is everything")
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
)

// TestProgramBesideConfig: a page reaches the program beside setpoint.yaml however
// the configuration is named, and doctor and validate say the same as the agent
// finds.
func TestProgramBesideConfig(t *testing.T) {
	const (
		beside = "./siren.sh"
		below  = "bin/siren.sh"
		above  = "../siren.sh"
		word   = "siren-of-this-test"
	)
	cases := map[string]struct {
		reason string
		// from is where the command is given, below the folder above the
		// configuration's.
		from, flag, env, program string
		heard                    bool
	}{
		"Default":      {"nothing names it", "conf", "", "", beside, true},
		"DefaultBelow": {"a folder below", "conf", "", "", below, true},
		"DefaultAbove": {"a folder above", "conf", "", "", above, true},
		"Relative":     {"a folder in --config", ".", "conf/setpoint.yaml", "", beside, true},
		"BackHere":     {"the program is in the working directory", ".", "conf/setpoint.yaml", "", above, true},
		"Dot":          {"the same folder, written out", "conf", "./setpoint.yaml", "", beside, true},
		"Up":           {"from a folder below", "conf/bin", "../setpoint.yaml", "", beside, true},
		"Absolute":     {"the whole path", ".", "ROOT/conf/setpoint.yaml", "", beside, true},
		"Variable":     {"SETPOINT_CONFIG", "conf", "", "setpoint.yaml", beside, true},
		"VariableFar":  {"SETPOINT_CONFIG with a folder", ".", "", "conf/setpoint.yaml", beside, true},
		"Word":         {"a word is looked up in PATH", "conf", "", "", word, true},
		"WordFar":      {"from everywhere", ".", "conf/setpoint.yaml", "", word, true},
		"WordHere":     {"and not beside setpoint.yaml", "conf", "", "", "siren.sh", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(name, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write("conf/setpoint.yaml", `sources: [{name: main, url: "http://127.0.0.1:1"}]
receivers:
  - name: siren
    command:
      argv: [`+tc.program+"]\n")
			write("conf/slo/checkout.yaml", aService)
			write("conf/rules.yaml", "rules: []\n")
			for _, file := range []string{"conf/siren.sh", "conf/bin/siren.sh", "siren.sh", "path/" + word} {
				write(file, "#!/bin/sh\ncat > /dev/null; echo \"$0\" > heard\n")
			}
			t.Chdir(filepath.Join(root, tc.from))
			t.Setenv("PATH", filepath.Join(root, "path")+string(os.PathListSeparator)+os.Getenv("PATH"))
			var out, complaints bytes.Buffer
			a := &app{
				in: strings.NewReader(""), out: &out, err: &complaints, now: time.Now,
				getenv:     func(string) string { return tc.env },
				configPath: strings.Replace(tc.flag, "ROOT", root, 1),
			}
			s, err := a.site()
			if err != nil {
				t.Fatal(err)
			}
			told, _, err := s.receivers(telling{now: time.Now, send: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = told[0].Send(t.Context(), escalate.Page{ID: "e1", Reason: escalate.CannotAct, Now: escalate.CannotAct, Since: time.Now()}, "")
			if (err == nil) != tc.heard {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if _, err := os.Stat(filepath.Join(root, "conf", "heard")); (err == nil) != tc.heard {
				t.Errorf("%s: it did not run in the folder of setpoint.yaml: %v", tc.reason, err)
			}
			if got := commandItem(s.cfg.Receivers[0]); (got.Result == resultOK) != tc.heard {
				t.Errorf("%s: doctor says %+v", tc.reason, got)
			}
			args := []string{"validate"}
			if a.configPath != "" {
				args = append(args, "--config", a.configPath)
			}
			code := a.run(args)
			if (code == exitFine) != tc.heard || !tc.heard && !strings.Contains(complaints.String(), "setpoint.yaml:5: receivers[0].command.argv: the program siren.sh cannot be found") {
				t.Errorf("%s: validate: exit %d, %s%s", tc.reason, code, out.String(), complaints.String())
			}
		})
	}
}

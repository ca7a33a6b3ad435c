package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// commandDocument is document with a program instead of a URL.
func commandDocument(argv, status string) string {
	text := replace(document, map[string]string{
		"SOURCE": "main", "APPROVER": `"@oncall"`, "RECEIVER": "oncall", "OWNER": "oncall",
		"SECRET": "x", "URL": "x", "STATUS": "x",
	})
	head, rest, _ := strings.Cut(text, "      target:\n")
	_, tail, _ := strings.Cut(rest, "  escalation:")
	target := "      target:\n        argv: " + argv + "\n"
	if status != "" {
		target += "        statusArgv: " + status + "\n"
	}
	return strings.Replace(head, "webhook.post", "command.run", 1) + target + "  escalation:" + tail
}

// A relative path is relative to the file that holds it: the document's for a
// program, setpoint.yaml's for the list. Both are named as they were found.
func TestValidateCommand(t *testing.T) {
	cases := map[string]struct {
		reason, file, allow, argv, status, want string
	}{
		"Same":   {"Both files are in one folder.", "slo.yaml", `["./restart.sh"]`, "[./restart.sh]", "", ""},
		"Above":  {"The document is in a folder below.", "slo/x.yaml", `["./restart.sh"]`, "[../restart.sh, -f]", "", ""},
		"Below":  {"The program is beside the document.", "slo/x.yaml", `["slo/restart.sh"]`, "[./restart.sh]", "", ""},
		"Status": {"What is asked is run too.", "slo.yaml", `["./restart.sh"]`, "[./restart.sh]", "[./status.sh]", "slo.yaml:31: spec.actions[0].target.statusArgv[0]: the program status.sh, found from this file's folder, is not in executors.command.allow of setpoint.yaml, which allows restart.sh"},
		"Other": {
			"The same words in two folders are two programs.", "slo/x.yaml", `["./restart.sh", "./bin/b"]`, "[./restart.sh]", "",
			"slo/x.yaml:30: spec.actions[0].target.argv[0]: the program slo/restart.sh, found from this file's folder, is not in executors.command.allow of setpoint.yaml, which allows bin/b, restart.sh",
		},
		"None":   {"An empty list allows nothing.", "slo.yaml", `[]`, "[/bin/true]", "", "slo.yaml:30: spec.actions[0].target.argv[0]: the program /bin/true, found from this file's folder, is not in executors.command.allow of setpoint.yaml, which allows no program"},
		"Folder": {"An entry is a program, not what is below it.", "slo.yaml", `["./bin"]`, "[./bin/restart.sh]", "", "slo.yaml:30: spec.actions[0].target.argv[0]: the program bin/restart.sh, found from this file's folder, is not in executors.command.allow of setpoint.yaml, which allows bin"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := spec.Load([]spec.File{{Name: tc.file, Data: []byte(commandDocument(tc.argv, tc.status))}}, []spec.Reader{openslo.Reader{}})
			if err != nil {
				t.Fatal(err)
			}
			text := replace(validConfig, nil) + "\n"
			text = strings.Replace(text, "executors: {", "executors: {command: {allow: "+tc.allow+"}, ", 1)
			c, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(text)})
			if err != nil {
				t.Fatal(err)
			}
			c.SetDirectory(".")
			got := ""
			if err := c.Validate(set); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAllowsPrograms(t *testing.T) {
	cases := map[string]struct {
		reason, entry, program string
		want                   bool
	}{
		"Same":     {"the program itself", "/opt/restart.sh", "/opt/restart.sh", true},
		"Cleaned":  {"however it is written", "/opt/./bin/../restart.sh", "/opt//restart.sh", true},
		"Folder":   {"a folder is no program", "/opt", "/opt/restart.sh", false},
		"Prefix":   {"nor is half a name", "/opt/restart", "/opt/restart.sh", false},
		"Up":       {"no way up", "/opt/restart.sh", "/opt/restart.sh/../other.sh", false},
		"Case":     {"names have a case", "/opt/restart.sh", "/opt/Restart.sh", false},
		"Pattern":  {"there are no patterns", "/opt/*", "/opt/restart.sh", false},
		"Relative": {"where a relative one starts is not known here", "/opt/restart.sh", "restart.sh", false},
		"Empty":    {"nothing is not allowed by nothing", "", "", false},
		"Dot":      {"nor by the folder", ".", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (config.CommandExecutor{Allow: []string{tc.entry}}).Allows(tc.program); got != tc.want {
				t.Errorf("%s: %s by %s: %t, want %t", tc.reason, tc.program, tc.entry, got, tc.want)
			}
		})
	}
}

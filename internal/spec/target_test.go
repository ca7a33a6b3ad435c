package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

const commandDocument = `apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  actions:
    - name: scale
      uses: command.run
      target: {argv: [<PROGRAM>, shop, "${parameters.replicas}", "", "a b"], statusArgv: [<STATUS>, shop]}
      class: approval
      reversal: restore
      parameters:
        replicas: {type: integer, minimum: 0, maximum: 20, maximumFactor: 2}
    - name: restart
      uses: command.run
      target: {argv: [<PROGRAM>, shop]}
      class: approval
      reversal: transient
`

// A relative program is relative to the file that holds it, and never looked
// up in PATH.
func TestCommandTarget(t *testing.T) {
	cases := map[string]struct {
		reason, file, program, status string
		want, wantStatus, canonical   string
	}{
		"Beside":   {"beside the document", "slo/x.yaml", "./restart.sh", "./status.sh", "slo/restart.sh", "slo/status.sh", "command slo/restart.sh shop"},
		"Above":    {"above it, which is the plain way from a folder of documents", "slo/x.yaml", "../restart.sh", "../bin/../status.sh", "restart.sh", "status.sh", "command restart.sh shop"},
		"Bare":     {"a bare name is a file too", "/etc/setpoint/slo/x.yaml", "systemctl", "status", "/etc/setpoint/slo/systemctl", "/etc/setpoint/slo/status", "command /etc/setpoint/slo/systemctl shop"},
		"Absolute": {"an absolute one is cleaned", "slo/x.yaml", "/opt/./bin/../restart.sh", "/opt/status.sh", "/opt/restart.sh", "/opt/status.sh", "command /opt/restart.sh shop"},
		"Space":    {"a space does not make two words", "x.yaml", "my restart.sh", "./s", "my restart.sh", "s", `command "my restart.sh" shop`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("<PROGRAM>", tc.program, "<STATUS>", tc.status).Replace(commandDocument)
			set, err := spec.Load([]spec.File{read(t, "base.yaml"), {Name: tc.file, Data: []byte(text)}}, readers)
			if err != nil {
				t.Fatal(err)
			}
			svc, _ := set.Service("shop")
			scale, restart := svc.Remediation.Actions[0], svc.Remediation.Actions[1]
			want := spec.Target{
				Argv:       []string{tc.want, "shop", "${parameters.replicas}", "", "a b"},
				StatusArgv: []string{tc.wantStatus, "shop"},
			}
			if diff := cmp.Diff(want, scale.Target); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
			if got := scale.Canonical(); got != tc.canonical+` "" "a b"` {
				t.Errorf("%s: canonical %s", tc.reason, got)
			}
			if got := restart.Canonical(); got != tc.canonical {
				t.Errorf("%s: canonical %s, want %s", tc.reason, got, tc.canonical)
			}
			if scale.Mark() != spec.MarkQuery || restart.Mark() != spec.MarkUnmarked {
				t.Errorf("marks %s and %s, want query by statusArgv, and unmarked", scale.Mark(), restart.Mark())
			}
		})
	}
}

// Two actions lock each other when only their parameters differ, and not when
// a fixed argument does.
func TestCommandLocks(t *testing.T) {
	of := func(argv ...string) string {
		return spec.Action{Uses: "command.run", Target: spec.Target{Argv: argv}}.Canonical()
	}
	base := of("/r", "shop", "${parameters.x}")
	if other := of("/r", "${parameters.y}", "shop"); other != base {
		t.Errorf("%s and %s differ by parameters alone", base, other)
	}
	for _, other := range []string{of("/r", "stock"), of("/r"), of("/r shop"), of("/r", "shop", ""), of("/r", "shop", "${x}"), of("/r", "\"shop\"")} {
		if other == base {
			t.Errorf("%s is another target", other)
		}
	}
}

func FuzzPlaceholder(f *testing.F) {
	for _, s := range []string{"${parameters.replicas}", "${parameters.a-b_c}", "${parameters.}", "x${parameters.a}", "${parameters.a}\n", "${parameters.a}${parameters.b}", "${key}", "$${parameters.a}", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, ok := spec.Placeholder(s)
		if ok != (name != "") || ok && s != "${parameters."+name+"}" {
			t.Errorf("%q stands for %q (%t)", s, name, ok)
		}
	})
}

package rego_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Each folder is one mistake that an author may make. Its file want says how
// it ends: "load: <words of the error>", or "deny: <code of the fault>", or
// "deny: undefined". None may grant.
func TestMistakes(t *testing.T) {
	dirs, err := filepath.Glob("testdata/mistakes/*")
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d fixtures: %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join(dir, "want"))
			if err != nil {
				t.Fatal(err)
			}
			kind, want, _ := strings.Cut(strings.TrimRight(string(raw), "\n"), ": ")
			p, err := rego.Load(os.DirFS(dir), rego.Options{Deadline: 300 * time.Millisecond})
			if kind == "load" {
				if err == nil || !strings.Contains(err.Error(), want) || p != nil {
					t.Fatalf("error %v, want one that holds %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatalf("does not load: %v", err)
			}
			r := p.Evaluate(context.Background(), input(t, granted()))
			d := gate.Decide(granted(), r)
			if _, ok := d.Permit(); ok || d.Verdict != gate.Deny {
				t.Fatalf("the mistake gives %s: %+v", d.Verdict, r)
			}
			if want == "undefined" && (r.Fault != "" || d.Reasons[0].Code != gate.ReasonUndefined) {
				t.Errorf("fault %q, reasons %+v", r.Fault, d.Reasons)
			}
			if want != "undefined" && !strings.HasPrefix(r.Fault, want+": ") {
				t.Errorf("fault %q, want %s", r.Fault, want)
			}
		})
	}
}

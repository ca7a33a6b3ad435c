package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// TestNobodySeesWhatToRestore: an actuator may answer anything. What is no value
// of the parameter cannot be put back, so a person is asked before it is
// replaced.
func TestNobodySeesWhatToRestore(t *testing.T) {
	for name, was := range map[string]any{"a list": []string{"4"}, "a text": "4", "half": 4.5, "a switch": true} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.set.Services[0].Remediation.Actions[0].Parameters[0].MaximumFactor = 0
			w.actuator.SetState("replicas", was)
			w.start()
			w.healthy()
			w.breakNow(0.3)
			w.until("question", 15*time.Minute, func(res reconcile.Result) bool { return res.Step.Kind == "ask" })
			if n := len(w.actuator.Effects()); n != 0 {
				t.Fatalf("%d effects without a person", n)
			}
			// Who approves it knows that there is no way back, and hears so.
			w.answer(true)
			w.until("applied effect", 15*time.Minute, applied)
			w.breakNow(0.9)
			res := w.until("outcome", 30*time.Minute, judged)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			w.run(2 * time.Minute)
			if diff := cmp.Diff([]any{int64(6)}, w.wrote()); diff != "" {
				t.Errorf("the actuator got (-want +got):\n%s", diff)
			}
			if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) || strings.Contains(got, "ledger") {
				t.Errorf("pages: %s", got)
			}
		})
	}
}

// TestUndoOfChangedParameters: an action whose parameters were edited meanwhile
// is not the one that would be taken back; half of it is never sent.
func TestUndoOfChangedParameters(t *testing.T) {
	for name, edit := range map[string]func([]spec.Parameter) []spec.Parameter{
		"added": func(ps []spec.Parameter) []spec.Parameter {
			return append(ps, spec.Parameter{Name: "zone", Type: spec.String, Enum: []string{"a", "b"}})
		},
		"renamed": func(ps []spec.Parameter) []spec.Parameter { ps[0].Name = "size"; return ps },
		"retyped": func(ps []spec.Parameter) []spec.Parameter { ps[0].Type = spec.String; return ps },
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			w.set.Services[0].Remediation.HoldFor = 0 // or the edit would ask a person anyway
			w.start()
			w.healthy()
			w.breakNow(0.3)
			w.until("applied effect", 15*time.Minute, applied)
			w.breakNow(0.9)
			svc := &w.set.Services[0]
			a := svc.Remediation.Actions[0]
			a.Parameters = edit(append([]spec.Parameter(nil), a.Parameters...))
			svc.Remediation.Actions = []spec.Action{a}
			svc.Digest, w.set.Digest = "doc-2", "set-2"
			if err := w.r.Reload(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			w.until("outcome", 30*time.Minute, judged)
			w.run(2 * time.Minute)
			for i, sent := range w.actuator.Effects() {
				if i > 0 {
					t.Errorf("sent %v", sent.Parameters)
				}
			}
			if got := w.pager.reasons(); !strings.Contains(got, escalate.UndoHeld) {
				t.Errorf("pages: %s", got)
			}
		})
	}
}

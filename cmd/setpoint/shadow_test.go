package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/web"
)

func TestShadowIsShown(t *testing.T) {
	const revision = "1a2b3c4d5e6f7a8b"
	tests := map[string]struct {
		reason string
		in     web.Decision
		cells  string
		line   string
	}{
		"None": {"without a shadow there is nothing to say", web.Decision{Verdict: "auto"}, "|", ""},
		"Same": {"agreement is said shortly",
			web.Decision{Verdict: "auto", Shadow: &web.Shadow{Revision: revision, Verdict: "auto", Reasons: []string{"policy:allowed"}}},
			"same|policy:allowed", "  shadow policy 1a2b3c4d5e6f would have said the same (policy:allowed)"},
		"Verdict": {"another verdict with its reasons",
			web.Decision{Verdict: "auto", Shadow: &web.Shadow{Revision: revision, Verdict: "approval", Reasons: []string{"policy:after-hours", "warming"}, Differs: true}},
			"approval|policy:after-hours,warming", "  shadow policy 1a2b3c4d5e6f would have said approval (policy:after-hours,warming)"},
		"Undefined": {"a policy that says nothing",
			web.Decision{Verdict: "auto", Shadow: &web.Shadow{Revision: revision, Verdict: "deny", Differs: true}},
			"deny|", "  shadow policy 1a2b3c4d5e6f would have said deny"},
		"Held": {"a refusal for now is no refusal for good",
			web.Decision{Verdict: "auto", Shadow: &web.Shadow{Revision: revision, Verdict: "deny", Hold: true, Reasons: []string{"open-approvals"}, Differs: true}},
			"deny, held|open-approvals", "  shadow policy 1a2b3c4d5e6f would have said deny, held (open-approvals)"},
		"Final": {"what is held would be refused for good",
			web.Decision{Verdict: "deny", Hold: true, Shadow: &web.Shadow{Revision: revision, Verdict: "deny", Reasons: []string{"policy:never"}, Differs: true}},
			"deny|policy:never", "  shadow policy 1a2b3c4d5e6f would have said deny (policy:never)"},
		"People": {"the same verdict by other people",
			web.Decision{Verdict: "approval", Shadow: &web.Shadow{Revision: revision, Verdict: "approval", Reasons: []string{"policy:two-persons"}, Differs: true}},
			"approval, other approvals|policy:two-persons", "  shadow policy 1a2b3c4d5e6f would have said approval, other approvals (policy:two-persons)"},
		"Fault": {"one that could not rule says why",
			web.Decision{Verdict: "auto", Shadow: &web.Shadow{Revision: revision, Verdict: "deny", Hold: true, Reasons: []string{"policy-fault"}, Differs: true, Fault: "timeout: too slow"}},
			"fault|timeout: too slow", "  shadow policy 1a2b3c4d5e6f could not rule: timeout: too slow"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(shadowCells(tt.in), "|"); got != tt.cells {
				t.Errorf("%s: cells %q, want %q", tt.reason, got, tt.cells)
			}
			var out bytes.Buffer
			p := &paper{w: &out}
			p.shadow(tt.in)
			if diff := cmp.Diff(tt.line, strings.TrimSuffix(out.String(), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

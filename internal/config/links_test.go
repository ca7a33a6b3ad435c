package config_test

import (
	"testing"

	"github.com/setpoint-dev/setpoint/internal/config"
)

func TestLinks(t *testing.T) {
	cases := map[string]struct {
		reason string
		web    config.Web
		want   string
	}{
		"External": {"people are not where the agent listens", config.Web{Listen: "127.0.0.1:8321", ExternalURL: "https://setpoint.internal/"}, "https://setpoint.internal"},
		"Listen":   {"without it the address is the best guess", config.Web{Listen: "127.0.0.1:8321"}, "http://127.0.0.1:8321"},
		"None":     {"an agent that does not listen has no page", config.Web{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.web.Links(); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	traces := config.Telemetry{TraceURL: "https://traces.internal/trace/{trace}"}
	if got := traces.Trace("4bf9"); got != "https://traces.internal/trace/4bf9" {
		t.Errorf("trace at %q", got)
	}
	if got := traces.Trace("") + (config.Telemetry{}).Trace("4bf9"); got != "" {
		t.Errorf("a link to nowhere: %q", got)
	}
}

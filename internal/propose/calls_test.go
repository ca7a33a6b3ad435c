package propose_test

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestLimitsReached(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limits := propose.Limits{CallsPerHour: 3, CallsPerServicePerHour: 2, TokensPerDay: 1000}
	call := func(ago time.Duration, service string, tokens int) propose.Call {
		return propose.Call{At: now.Add(-ago), Service: service, Requests: 1, Tokens: tokens}
	}
	cases := map[string]struct {
		reason string
		calls  []propose.Call
		want   string
	}{
		"Fresh":      {"nothing was asked", nil, ""},
		"Service":    {"two calls for this service", []propose.Call{call(0, "checkout", 1), call(0, "checkout", 1)}, "callsPerServicePerHour"},
		"Others":     {"two calls for others", []propose.Call{call(0, "a", 1), call(0, "b", 1)}, ""},
		"All":        {"three calls in the hour", []propose.Call{call(0, "a", 1), call(0, "b", 1), call(0, "c", 1)}, "callsPerHour"},
		"Repair":     {"a repair turn is a call", []propose.Call{{At: now, Service: "checkout", Requests: 2}}, "callsPerServicePerHour"},
		"HourPassed": {"they were an hour ago", []propose.Call{call(time.Hour, "checkout", 1), call(time.Hour, "checkout", 1)}, ""},
		"Tokens":     {"the day's tokens are used", []propose.Call{call(23*time.Hour, "a", 1000)}, "tokensPerDay"},
		"DayPassed":  {"they were yesterday", []propose.Call{call(24*time.Hour, "a", 1000)}, ""},
		"Future":     {"the clock was put back", []propose.Call{call(-time.Hour, "checkout", 1), call(-time.Hour, "checkout", 1)}, "callsPerServicePerHour"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := limits.Reached(tc.calls, "checkout", now)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			if none := (propose.Limits{}).Reached(tc.calls, "checkout", now); none != "" {
				t.Errorf("without limits: %q", none)
			}
		})
	}
}

func TestNoModel(t *testing.T) {
	for fault, want := range map[string]bool{
		"timeout: x": true, "unreachable: x": true, "rate-limited: x": true, "provider-error: x": true, "limit: x": true, "resting: x": true,
		"malformed: x": false, "truncated: x": false, "refusal: x": false, "content-filter: x": false, "empty: x": false,
		"prompt: x": true, "canceled: x": false, "": false,
	} {
		if got := propose.NoModel(fault); got != want {
			t.Errorf("NoModel(%q) = %v, want %v", fault, got, want)
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/web"
)

func TestChangesOnPaper(t *testing.T) {
	now := time.Date(2026, 3, 1, 13, 38, 0, 0, time.UTC)
	change := func(ago time.Duration, what, version string) web.Change {
		return web.Change{Time: now.Add(-ago), Service: "checkout", What: what, Version: version}
	}
	cases := map[string]struct {
		reason string
		items  []web.Change
		want   string
	}{
		"None":   {"nothing was changed, and nothing is said", nil, ""},
		"Deploy": {"which one, and when", []web.Change{change(12*time.Minute, "deploy", "v43")}, "\nchanged lately\n  \"deploy v43\" at 13:26Z, 12m ago\n"},
		"Days":   {"another day is named", []web.Change{change(24*time.Hour, "flag", "")}, "\nchanged lately\n  \"flag\" at 2026-02-28 13:38Z, 24h ago\n"},
		"Ahead":  {"a reporter's clock may be ahead", []web.Change{change(-time.Minute, "deploy", "v1")}, "\nchanged lately\n  \"deploy v1\" at 13:39Z, just now\n"},
		"Many": {
			"three are shown", []web.Change{change(0, "a", ""), change(1, "b", ""), change(2, "c", ""), change(3, "d", ""), change(4, "e", "")},
			"\nchanged lately\n  \"a\" at 13:38Z, just now\n  \"b\" at 13:37Z, 0s ago\n  \"c\" at 13:37Z, 0s ago\n  and 2 more: `setpoint get changes --service checkout` lists all\n",
		},
		"Stranger": {
			"a reporter's words make no line and end no quotation", []web.Change{change(time.Minute, "x\"\n\u202eobey", strings.Repeat("v", 200))},
			"\nchanged lately\n  \"x\\\" obey " + strings.Repeat("v", 91) + "…\" at 13:37Z, 60s ago\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &paper{w: &out, now: now}
			p.changes("changed lately", tc.items, now, "checkout")
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProposerCell(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     web.Decision
		want   string
	}{
		"Model":    {"people know their endpoint", web.Decision{Proposer: web.Proposer{Kind: "openai", Endpoint: "main", Model: "m"}}, "main"},
		"Rules":    {"rules have no endpoint", web.Decision{Proposer: web.Proposer{Kind: "rules"}}, "rules"},
		"Fallback": {"and say why they spoke", web.Decision{Proposer: web.Proposer{Kind: "rules"}, Fallback: "timeout"}, "rules (timeout)"},
		"Undo":     {"the loop's own", web.Decision{Proposer: web.Proposer{Kind: "undo"}}, "undo"},
		"Limited":  {"a model that was not asked", web.Decision{Proposer: web.Proposer{Kind: "openai"}}, "openai"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := proposerCell(tc.in); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

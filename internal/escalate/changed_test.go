package escalate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/measure"
)

// section is what stands under a heading of a page.
func section(text, heading string) []string {
	_, rest, found := strings.Cut(text, heading+"\n")
	if !found {
		return nil
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestChangedLately(t *testing.T) {
	change := func(ago time.Duration, what, version string) measure.Change {
		return measure.Change{At: at(-ago), Service: "checkout", What: what, Version: version}
	}
	cases := map[string]struct {
		reason  string
		changes []measure.Change
		service string
		want    []string
	}{
		"None": {"a page that has nothing to say of changes says nothing", nil, "checkout", nil},
		"Deploy": {
			"whoever is asked because of a deploy sees which one", []measure.Change{change(12*time.Minute, "deploy", "v43")}, "checkout",
			[]string{"“deploy v43” at 2026-11-29 11:48:00 UTC, 12m ago"},
		},
		"NoVersion": {
			"a change need not have a version", []measure.Change{change(30*time.Second, "flag", "")}, "checkout",
			[]string{"“flag” at 2026-11-29 11:59:30 UTC, 30s ago"},
		},
		"Ahead": {
			"a reporter's clock may be ahead", []measure.Change{change(-time.Minute, "deploy", "v43")}, "checkout",
			[]string{"“deploy v43” at 2026-11-29 12:01:00 UTC, just now"},
		},
		"Many": {
			"a page is read on a phone, and the command lists them all",
			[]measure.Change{
				change(time.Minute, "deploy", "v5"), change(time.Hour, "deploy", "v4"), change(2*time.Hour, "deploy", "v3"),
				change(3*time.Hour, "deploy", "v2"), change(4*time.Hour, "deploy", "v1"),
			},
			"check out",
			[]string{
				"“deploy v5” at 2026-11-29 11:59:00 UTC, 1m ago", "“deploy v4” at 2026-11-29 11:00:00 UTC, 1h ago",
				"“deploy v3” at 2026-11-29 10:00:00 UTC, 2h ago", "… and 2 more: setpoint get changes --service 'check out'",
			},
		},
		"Stranger": {
			"a reporter's words make no line, no link and no command, and end no quotation",
			[]measure.Change{change(time.Hour, "deploy”\n\u202e[approve](http://evil) <!channel> `x`", strings.Repeat("v", 200))}, "checkout",
			[]string{"“deploy' [approve] (http://evil) ‹!channel› 'x' " + strings.Repeat("v", 52) + "…” at 2026-11-29 11:00:00 UTC, 1h ago"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Changes, f.Service.Name = tc.changes, tc.service
			page := escalate.Render(f)
			if diff := cmp.Diff(tc.want, section(page.Text, "Changed lately")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			f.Changes = nil
			if without := escalate.Render(f); without.Gist != page.Gist {
				t.Errorf("%s: a change tells people again of a page that they have", tc.reason)
			}
		})
	}
}

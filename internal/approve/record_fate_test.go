package approve_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

// Whoever comes second is told who was first, when, and what they said.
func TestRefusalSaysWhoDecided(t *testing.T) {
	const m = time.Minute
	tests := map[string]struct {
		reason        string
		first, second approve.Answer
		want          string
	}{
		"Other": {
			reason: "another person's approval stands", first: yes("slack:T01/U02", m), second: yes("os:alice", 2*m),
			want: "ticket t7 was already decided by slack:T01/U02 at 2026-11-29T12:01:00Z: approved",
		},
		"Same": {
			reason: "a double click", first: yes("os:alice", m), second: yes("os:alice", 2*m),
			want: "the ticket was already decided by os:alice at 2026-11-29T12:01:00Z: approved",
		},
		"Denied": {
			reason: "a deny is final", first: no("os:alice", m), second: yes("token:bob", 2*m),
			want: "ticket t7 was already decided by os:alice at 2026-11-29T12:01:00Z: denied",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tk, _ := say(t, ticket(need(1, "@payments")), tt.first)
			_, err := approve.Record(tk, tt.second, groups)
			var refused *approve.Refusal
			if !errors.As(err, &refused) || !strings.Contains(refused.Text, tt.want) {
				t.Errorf("%s: refused with %v, want %q in it", tt.reason, err, tt.want)
			}
		})
	}
	withdrawn := ticket(need(1, "@payments"))
	withdrawn.State = approve.Withdrawn
	if _, err := approve.Record(withdrawn, yes("os:alice", m), groups); err == nil || !strings.Contains(err.Error(), "ticket t7 is withdrawn") {
		t.Errorf("refused with %v, want that it is withdrawn", err)
	}
}

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
			reason: "a double click is told once", first: yes("os:alice", m), second: yes("os:alice", 2*m),
			want: "os:alice answered ticket t7 already, at 2026-11-29T12:01:00Z: approved$",
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
			if !errors.As(err, &refused) || !strings.Contains(refused.Text+"$", tt.want) {
				t.Errorf("%s: refused with %v, want %q in it", tt.reason, err, tt.want)
			}
		})
	}
	// Of two approvals that are needed, one was given twice.
	one, _ := say(t, ticket(need(2, "@payments")), yes("os:alice", m))
	if _, err := approve.Record(one, yes("os:alice", 2*m), groups); err == nil || !strings.HasSuffix(err.Error(), "approved; the ticket is open and waits for others") {
		t.Errorf("refused with %v, want that others have to answer", err)
	}
	// Another has denied since.
	both, _ := say(t, one, no("token:bob", 2*m))
	if _, err := approve.Record(both, yes("os:alice", 3*m), groups); err == nil || !strings.HasSuffix(err.Error(), "approved; the ticket was already decided by token:bob at 2026-11-29T12:02:00Z: denied") {
		t.Errorf("refused with %v, want who denied since", err)
	}
	withdrawn := ticket(need(1, "@payments"))
	withdrawn.State = approve.Withdrawn
	if _, err := approve.Record(withdrawn, yes("os:alice", m), groups); err == nil || !strings.Contains(err.Error(), "ticket t7 is withdrawn") {
		t.Errorf("refused with %v, want that it is withdrawn", err)
	}
}

// Who may not answer is told who may, and where that is written.
func TestRefusalSaysWhoMay(t *testing.T) {
	many := approve.Groups{"@payments": {"os:a", "os:b", "os:c", "os:d", "os:e", "os:f"}, "@sre": {"os:alice", "os:carol"}}
	for name, tt := range map[string]struct {
		groups approve.Groups
		want   string
	}{
		"Few":     {many, "approvers are @gone (nobody), @payments (6 people), @sre (os:alice, os:carol), os:zoe."},
		"Unknown": {nil, "approvers are @gone (nobody), @payments (nobody), @sre (nobody), os:zoe."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := approve.Record(ticket(need(1, "@payments", "os:zoe"), need(1, "@sre", "@gone")), yes("slack:T01/U9", time.Minute), tt.groups)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "setpoint.yaml, under approvers") ||
				!strings.HasPrefix(err.Error(), "slack:T01/U9 is not an approver of ticket t7; ") {
				t.Errorf("refused with %v, want %q", err, tt.want)
			}
		})
	}
}

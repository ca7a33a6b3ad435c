package approve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

var asked = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return asked.Add(d) }

var groups = approve.Groups{
	"@payments": {"os:alice", "token:bob", "slack:T01/U02"},
	"@sre":      {"os:alice", "os:carol"},
	"@nested":   {"@payments"},
	"@sloppy":   {"Alice Example", "os:"},
}

func ticket(needs ...gate.Need) approve.Ticket {
	return approve.Ticket{
		ID: "t7", Service: "checkout", Key: "checkout:1764417600-600", Digest: "d1gest",
		Needs: needs, Asked: asked, Expires: at(15 * time.Minute), State: approve.Open,
	}
}

func need(quorum int, names ...string) gate.Need {
	return gate.Need{Reason: "class-approval", Approvers: names, Quorum: quorum}
}

func yes(by string, d time.Duration) approve.Answer {
	return approve.Answer{Ticket: "t7", By: by, Via: "cli", Approve: true, Reason: "ok", At: at(d)}
}

func no(by string, d time.Duration) approve.Answer {
	a := yes(by, d)
	a.Approve, a.Reason = false, "not now"
	return a
}

// say records and applies answers in turn and returns the ticket with the code
// of each refusal ("" when it was recorded).
func say(t *testing.T, tk approve.Ticket, answers ...approve.Answer) (approve.Ticket, []string) {
	t.Helper()
	codes := make([]string, len(answers))
	for i, a := range answers {
		recorded, err := approve.Record(tk, a, groups)
		var refused *approve.Refusal
		switch {
		case errors.As(err, &refused):
			codes[i] = refused.Code
		case err != nil:
			t.Fatalf("Record: %v is no *Refusal", err)
		default:
			tk = approve.Apply(tk, recorded)
		}
	}
	return tk, codes
}

func TestAnswers(t *testing.T) {
	const m = time.Minute
	started := ticket(need(1, "@payments"))
	started.State, started.AnsweredAt, started.StartedAt = approve.Approved, at(m), at(2*m)
	other := yes("os:alice", m)
	other.Ticket = "t8"
	swapped, bound := yes("os:alice", m), yes("os:alice", m)
	swapped.Digest, bound.Digest = "0ther", "d1gest"

	cases := map[string]struct {
		reason  string
		ticket  approve.Ticket
		answers []approve.Answer
		state   approve.State
		codes   []string
	}{
		"OneOfGroup": {
			reason: "a member of the group satisfies a quorum of one",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Approved, codes: []string{""},
		},
		"Literal": {
			reason: "a principal may be listed itself",
			ticket: ticket(need(1, "os:dave")), answers: []approve.Answer{yes("os:dave", m)},
			state: approve.Approved, codes: []string{""},
		},
		"QuorumMissing": {
			reason: "zero in a document means one, never none",
			ticket: ticket(need(0, "@payments")), answers: []approve.Answer{yes("token:bob", m)},
			state: approve.Approved, codes: []string{""},
		},
		"QuorumMissingInOne": {
			reason: "a need whose quorum is missing still needs its one",
			ticket: ticket(need(1, "@payments"), need(0, "os:carol")), answers: []approve.Answer{yes("token:bob", m)},
			state: approve.Open, codes: []string{""},
		},
		"QuorumCountsPrincipals": {
			reason: "one person who clicks twice is one principal",
			ticket: ticket(need(2, "@payments")), answers: []approve.Answer{yes("os:alice", m), yes("os:alice", 2*m)},
			state: approve.Open, codes: []string{"", approve.RefusedRepeated},
		},
		"TwoPrincipals": {
			reason: "the second distinct principal completes the quorum",
			ticket: ticket(need(2, "@payments")), answers: []approve.Answer{yes("os:alice", m), yes("slack:T01/U02", 2*m)},
			state: approve.Approved, codes: []string{"", ""},
		},
		"EveryNeed": {
			reason: "one need satisfied of two is not enough",
			ticket: ticket(need(1, "@payments"), need(1, "@sre")), answers: []approve.Answer{yes("token:bob", m)},
			state: approve.Open, codes: []string{""},
		},
		"OneForBoth": {
			reason: "a member of both groups counts for both needs",
			ticket: ticket(need(1, "@payments"), need(1, "@sre")), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Approved, codes: []string{""},
		},
		"NoNeeds": {
			reason: "a ticket that names nobody can be approved by nobody",
			ticket: ticket(), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Open, codes: []string{approve.RefusedNotApprover},
		},
		"Deny": {
			reason: "one deny ends it, whatever the quorum",
			ticket: ticket(need(2, "@payments")), answers: []approve.Answer{yes("os:alice", m), no("token:bob", 2*m)},
			state: approve.Denied, codes: []string{"", ""},
		},
		"ApproveAfterDeny": {
			reason: "a deny is final",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{no("os:alice", m), yes("token:bob", 2*m), yes("os:alice", 3*m)},
			state: approve.Denied, codes: []string{"", approve.RefusedNotOpen, approve.RefusedRepeated},
		},
		"DenyAfterApproval": {
			reason: "until it was started a deny still stops the effect, also after the expiry",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", m), no("token:bob", 16*m)},
			state: approve.Denied, codes: []string{"", ""},
		},
		"DenyOwnApproval": {
			reason: "who approved and sees the mistake may take it back the safe way",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", m), no("os:alice", 2*m)},
			state: approve.Denied, codes: []string{"", ""},
		},
		"DenyAfterStart": {
			reason: "what was sent cannot be stopped, and the record must not pretend it was",
			ticket: started, answers: []approve.Answer{no("token:bob", 3*m)},
			state: approve.Approved, codes: []string{approve.RefusedStarted},
		},
		"DenyByStranger": {
			reason: "a stranger can stop nothing either",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{no("os:mallory", m)},
			state: approve.Open, codes: []string{approve.RefusedNotApprover},
		},
		"SecondApprover": {
			reason: "an approval of an approved ticket changes nothing",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", m), yes("token:bob", 2*m)},
			state: approve.Approved, codes: []string{"", approve.RefusedNotOpen},
		},
		"AtExpiry": {
			reason: "the instant of the expiry is too late",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", 15*m), no("os:alice", 15*m)},
			state: approve.Open, codes: []string{approve.RefusedExpired, approve.RefusedExpired},
		},
		"BeforeExpiry": {
			reason: "one nanosecond before it is not",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{yes("os:alice", 15*m-1)},
			state: approve.Approved, codes: []string{""},
		},
		"Ended": {
			reason: "expired says so, withdrawn and void are not open",
			ticket: approve.End(ticket(need(1, "@payments")), approve.Expired, "nobody answered"), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Expired, codes: []string{approve.RefusedExpired},
		},
		"Withdrawn": {
			reason: "a recovered service needs no approval",
			ticket: approve.End(ticket(need(1, "@payments")), approve.Withdrawn, "recovered"), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Withdrawn, codes: []string{approve.RefusedNotOpen},
		},
		"OtherTicket": {
			reason: "a click on one question cannot answer another",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{other},
			state: approve.Open, codes: []string{approve.RefusedOtherTicket},
		},
		"OtherBytes": {
			reason: "a click on other bytes than those that would be executed approves nothing",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{swapped},
			state: approve.Open, codes: []string{approve.RefusedOtherTicket},
		},
		"SameBytes": {
			reason: "a click on the very bytes counts",
			ticket: ticket(need(1, "@payments")), answers: []approve.Answer{bound},
			state: approve.Approved, codes: []string{""},
		},
		"NestedGroup": {
			reason: "groups hold principals, not groups",
			ticket: ticket(need(1, "@nested")), answers: []approve.Answer{yes("os:alice", m), yes("@payments", m)},
			state: approve.Open, codes: []string{approve.RefusedNotApprover, approve.RefusedNotApprover},
		},
		"DisplayName": {
			reason: "a listed string that is no principal approves nothing",
			ticket: ticket(need(1, "@sloppy", "Alice Example")), answers: []approve.Answer{yes("Alice Example", m), yes("os:", m)},
			state: approve.Open, codes: []string{approve.RefusedNotApprover, approve.RefusedNotApprover},
		},
		"UnknownGroup": {
			reason: "a group that config does not have is empty",
			ticket: ticket(need(1, "@gone")), answers: []approve.Answer{yes("os:alice", m)},
			state: approve.Open, codes: []string{approve.RefusedNotApprover},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, codes := say(t, tc.ticket, tc.answers...)
			if got.State != tc.state {
				t.Errorf("%s: state %q, want %q", tc.reason, got.State, tc.state)
			}
			if diff := cmp.Diff(tc.codes, codes); diff != "" {
				t.Errorf("%s: refusals, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFoldNeedsNoGroups(t *testing.T) {
	tk := ticket(need(1, "@payments"), need(1, "@sre"))
	a, err := approve.Record(tk, yes("os:alice", time.Minute), groups)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 1}, a.Satisfies); diff != "" {
		t.Errorf("Satisfies, -want +got:\n%s", diff)
	}
	got := approve.Apply(tk, a)
	if got.State != approve.Approved || !got.AnsweredAt.Equal(a.At) || got.Reason != "ok" {
		t.Errorf("got %s at %s (%s), want approved at the answer's time", got.State, got.AnsweredAt, got.Reason)
	}
	if len(tk.Answers) != 0 || tk.State != approve.Open {
		t.Errorf("Apply changed the ticket that it was given: %+v", tk)
	}
	if diff := cmp.Diff([]int{0, 0}, approve.Missing(got)); diff != "" {
		t.Errorf("Missing, -want +got:\n%s", diff)
	}
}

// What stands in the chain was not necessarily written by this version: an
// entry that satisfies nothing, or needs that are not there, approves nothing.
func TestApplyTrustsNoEntry(t *testing.T) {
	cases := map[string]struct {
		ticket    approve.Ticket
		satisfies []int
		approve   bool
	}{
		"Nothing":       {ticket(need(1, "@payments")), nil, true},
		"DeniesNothing": {ticket(need(1, "@payments")), nil, false},
		"OutOfRange":    {ticket(need(1, "@payments")), []int{1, -1}, true},
		"NoNeeds":       {ticket(), []int{0}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := yes("os:mallory", time.Minute)
			a.Approve, a.Satisfies = tc.approve, tc.satisfies
			if got := approve.Apply(tc.ticket, a); got.State != approve.Open {
				t.Errorf("the ticket became %s", got.State)
			}
		})
	}
}

// Two continuations of one ticket must not write into each other's answers.
func TestApplySharesNothing(t *testing.T) {
	tk := ticket(need(3, "@payments"))
	tk.Answers = make([]approve.Answer, 0, 4)
	bob, alice := yes("token:bob", time.Minute), yes("os:alice", time.Minute)
	bob.Satisfies, alice.Satisfies = []int{0}, []int{0}
	one := approve.Apply(tk, bob)
	_ = approve.Apply(tk, alice)
	if one.Answers[0].By != "token:bob" {
		t.Errorf("the answer of %s overwrote another's", one.Answers[0].By)
	}
}

func TestEnd(t *testing.T) {
	open := ticket(need(1, "@payments"))
	approved, _ := say(t, open, yes("os:alice", time.Minute))
	denied, _ := say(t, open, no("os:alice", time.Minute))
	started := approved
	started.StartedAt = at(2 * time.Minute)

	cases := map[string]struct {
		reason   string
		ticket   approve.Ticket
		end      approve.State
		want     approve.State
		recovery approve.State
	}{
		"OpenExpires":      {"nobody answered", open, approve.Expired, approve.Expired, approve.Withdrawn},
		"OpenWithdrawn":    {"recovered before an answer", open, approve.Withdrawn, approve.Withdrawn, approve.Withdrawn},
		"OpenVoid":         {"its document was deleted", open, approve.Void, approve.Void, approve.Withdrawn},
		"ApprovedVoid":     {"too late", approved, approve.Void, approve.Void, approve.Void},
		"ApprovedExpires":  {"an approved ticket is void, not expired", approved, approve.Expired, approve.Approved, approve.Void},
		"ApprovedApproved": {"an ending is no approval", open, approve.Approved, approve.Open, approve.Withdrawn},
		"Denied":           {"an ended ticket stays as it ended", denied, approve.Void, approve.Denied, approve.Withdrawn},
		"Started":          {"what was sent is not void", started, approve.Void, approve.Approved, approve.Void},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := approve.End(tc.ticket, tc.end, "because")
			if got.State != tc.want {
				t.Errorf("%s: state %q, want %q", tc.reason, got.State, tc.want)
			}
			if changed := got.State != tc.ticket.State; changed != (got.Reason == "because") {
				t.Errorf("%s: reason %q goes with state %q", tc.reason, got.Reason, got.State)
			}
			if r := approve.Recovered(tc.ticket); r != tc.recovery {
				t.Errorf("%s: Recovered %q, want %q", tc.reason, r, tc.recovery)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	const m = time.Minute
	open := ticket(need(1, "@payments"))
	early, _ := say(t, open, yes("os:alice", m))
	late, _ := say(t, open, yes("os:alice", 14*m))
	cases := map[string]struct {
		reason string
		ticket approve.Ticket
		want   time.Time
	}{
		"Open":  {"an open ticket ends at its expiry", open, at(15 * m)},
		"Early": {"an early answer waits until the expiry", early, at(15 * m)},
		"Late":  {"a late answer gets the spacing and two sweeps", late, at(14*m + 2*m + m)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := approve.EndAt(tc.ticket, 2*m, 30*time.Second); !got.Equal(tc.want) {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	needs := []gate.Need{{Expires: 0}, {Expires: 5 * m}, {Expires: 20 * m}}
	if got := approve.ExpiresAt(asked, 15*m, needs); !got.Equal(at(5 * m)) {
		t.Errorf("ExpiresAt %s, want the soonest need", got)
	}
	if got := approve.ExpiresAt(asked, 15*m, nil); !got.Equal(at(15 * m)) {
		t.Errorf("ExpiresAt %s, want approvalFor", got)
	}
}

func TestCheckPrincipal(t *testing.T) {
	for _, s := range []string{"slack:T0123456789/U0123456789", "os:alice", "token:ci-bot.2", `os:CORP\bob`, "os:bob@example.org", "os:host$"} {
		if err := approve.CheckPrincipal(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "alice", "@payments", "os:", "os: alice", "os:alice ", "os:alice\n", "os:al\u200bice", "os:\u0430lice",
		"slack:T01", "slack:T01/", "slack:/U01", "slack:T01/U01/U02", "slack:t01/u01", "slack:T01/@here",
		"token:", "token:a/b", "token:a:b", "OS:alice", "mail:a@b", "os:alice,os:bob",
	} {
		if approve.CheckPrincipal(s) == nil {
			t.Errorf("%q passes as a principal", s)
		}
	}
}

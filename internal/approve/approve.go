// Package approve is the person's part. It takes a Ticket, which is the
// ledger's record of one question, and Answers of authenticated people, and
// gives the ticket's state. Slack, web and command line are views on it.
//
// What config decides (who is in which group) is written into the answer when
// it is recorded, so that folding the ledger next year, under other groups,
// gives the same state.
package approve

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// State is where a ticket stands.
type State string

// The states. An answer can change Open; of an Approved ticket that was not
// started, a deny still can.
const (
	Open     State = "open"
	Approved State = "approved"
	Denied   State = "denied"
	// Expired: nobody answered in time. It is not a denial, and it escalates.
	Expired State = "expired"
	// Withdrawn: the service recovered before an answer.
	Withdrawn State = "withdrawn"
	// Void: it can no longer be executed, with the reason.
	Void State = "void"
)

// Ticket asks people to approve one digest under one key.
type Ticket struct {
	// ID is "t" and the number of the ledger entry that asked.
	ID      string `json:"id"`
	Service string `json:"service"`
	Episode string `json:"episode"`
	// Decision is the id of the decision that asked.
	Decision string `json:"decision"`
	// Key is of the window in which it was asked; the claim uses it.
	Key      gate.Key         `json:"key"`
	Digest   string           `json:"digest"`
	Proposal propose.Proposal `json:"proposal"`
	Needs    []gate.Need      `json:"needs"`
	Reasons  []gate.Reason    `json:"reasons"`
	Asked    time.Time        `json:"asked"`
	Expires  time.Time        `json:"expires"`
	// Trace is the id of the trace of the pass that asked; "" without traces.
	Trace string `json:"trace,omitempty"`
	// State and Reason are folded from answers and endings.
	State   State    `json:"state"`
	Reason  string   `json:"reason"`
	Answers []Answer `json:"answers"`
	// AnsweredAt is when it became approved or denied; zero before.
	AnsweredAt time.Time `json:"answeredAt,omitzero"`
	// ClaimedAt is when its key was claimed for it, which the ledger folds; zero
	// before. A ticket is claimed once.
	ClaimedAt time.Time `json:"claimedAt,omitzero"`
	// StartedAt is when its effect was started, which the ledger folds from the
	// claim; zero before. From then on a deny can stop nothing.
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// Answer is what one authenticated person said.
type Answer struct {
	Ticket string `json:"ticket"`
	// Digest is what the person saw, when the way in knows it; "" otherwise. An
	// answer to other bytes than the ticket's is refused.
	Digest string `json:"digest,omitempty"`
	// By is slack:<team>/<user>, token:<name> or os:<user>.
	By string `json:"by"`
	// Via is cli, web or slack.
	Via     string    `json:"via"`
	Approve bool      `json:"approve"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
	// Satisfies are the indices of Ticket.Needs for which this principal was
	// listed when the answer was recorded, in rising order.
	Satisfies []int `json:"satisfies"`
}

// Apply gives the ticket after a recorded answer. A deny is final. Approvals
// count distinct principals, until every need has its quorum. An answer that
// Record would have refused whatever the groups (a repeated one, one to
// another or an ended ticket) changes nothing, so the order in which two
// replicas recorded them cannot matter. Ticket values given in stay as they
// are.
func Apply(t Ticket, a Answer) Ticket {
	if standing(t, a) != nil || len(a.Satisfies) == 0 {
		return t
	}
	t.Answers = append(slices.Clone(t.Answers), a)
	switch {
	case !a.Approve:
		t.State, t.Reason, t.AnsweredAt = Denied, a.Reason, a.At
	case satisfied(t):
		t.State, t.Reason, t.AnsweredAt = Approved, a.Reason, a.At
	}
	return t
}

// satisfied reports whether every need has its quorum of distinct principals.
// A ticket without needs names nobody who may approve, so it never is.
func satisfied(t Ticket) bool {
	for _, n := range Missing(t) {
		if n > 0 {
			return false
		}
	}
	return len(t.Needs) > 0
}

// Missing returns how many further approvals each need wants, by its index.
func Missing(t Ticket) []int {
	missing := make([]int, len(t.Needs))
	for i, need := range t.Needs {
		by := map[string]bool{}
		for _, a := range t.Answers {
			if a.Approve && slices.Contains(a.Satisfies, i) {
				by[a.By] = true
			}
		}
		missing[i] = max(max(need.Quorum, 1)-len(by), 0)
	}
	return missing
}

// End gives the ticket after an ending that is no answer: Expired and
// Withdrawn end an Open one, Void an Open or Approved one. Any other ending
// changes nothing, since an ended ticket stays as it ended.
func End(t Ticket, s State, reason string) Ticket {
	switch {
	case t.State == Open && (s == Expired || s == Withdrawn || s == Void):
	case t.State == Approved && s == Void && t.StartedAt.IsZero():
	default:
		return t
	}
	t.State, t.Reason = s, reason
	return t
}

// Recovered is the state in which a measured recovery ends a ticket: Withdrawn
// before an answer, Void after.
func Recovered(t Ticket) State {
	if t.State == Approved {
		return Void
	}
	return Withdrawn
}

// ExpiresAt is when a ticket asked at that time expires: approvalFor later, or
// earlier where a need wants it.
func ExpiresAt(asked time.Time, approvalFor time.Duration, needs []gate.Need) time.Time {
	d := approvalFor
	for _, n := range needs {
		if n.Expires > 0 && n.Expires < d {
			d = n.Expires
		}
	}
	return asked.Add(d)
}

// EndAt is when an approved ticket that still waits becomes void(too-late):
// its expiry, or minSpacing plus two sweeps after the answer if that is later.
// For an open ticket it is its expiry.
func EndAt(t Ticket, minSpacing, sweep time.Duration) time.Time {
	if t.State != Approved {
		return t.Expires
	}
	if late := t.AnsweredAt.Add(minSpacing + 2*sweep); late.After(t.Expires) {
		return late
	}
	return t.Expires
}

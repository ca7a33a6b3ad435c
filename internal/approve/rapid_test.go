package approve_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

var people = []string{"os:alice", "token:bob", "slack:T01/U02", "os:carol", "os:mallory", "alice"}

func genTicket(t *rapid.T) approve.Ticket {
	names := append([]string{"@payments", "@sre", "@gone"}, people...)
	var needs []gate.Need
	for range rapid.IntRange(0, 3).Draw(t, "needs") {
		needs = append(needs, need(rapid.IntRange(0, 3).Draw(t, "quorum"),
			rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "approvers")...))
	}
	return ticket(needs...)
}

func genAnswers(t *rapid.T) []approve.Answer {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) approve.Answer {
		a := yes(rapid.SampledFrom(people).Draw(t, "by"), time.Duration(rapid.IntRange(0, 20).Draw(t, "minute"))*time.Minute)
		a.Approve = rapid.IntRange(0, 4).Draw(t, "say") > 0
		return a
	}), 0, 12).Draw(t, "answers")
}

// INV-22, INV-23, INV-24: what became approved has a quorum of distinct listed
// principals in every need, each before the expiry; and nothing else of the
// question moved.
func TestApprovedOnlyByQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := genTicket(t)
		got := before
		for _, a := range genAnswers(t) {
			if recorded, err := approve.Record(got, a, groups); err == nil {
				got = approve.Apply(got, recorded)
			}
		}
		moved := got
		moved.State, moved.Reason, moved.Answers, moved.AnsweredAt = before.State, before.Reason, before.Answers, before.AnsweredAt
		if diff := cmp.Diff(before, moved); diff != "" {
			t.Fatalf("answers moved the question:\n%s", diff)
		}
		if got.State != approve.Approved {
			return
		}
		if len(before.Needs) == 0 {
			t.Fatal("approved although nobody may approve")
		}
		for i, n := range before.Needs {
			who := map[string]bool{}
			for _, a := range got.Answers {
				if a.Approve && a.At.Before(before.Expires) && mayApprove(n, a.By) {
					who[a.By] = true
				}
			}
			if len(who) < max(n.Quorum, 1) {
				t.Fatalf("need %d approved by %d of %d", i, len(who), n.Quorum)
			}
		}
	})
}

// mayApprove says the same as the package in other words.
func mayApprove(n gate.Need, by string) bool {
	if by == "alice" {
		return false
	}
	return slices.ContainsFunc(n.Approvers, func(name string) bool {
		return name == by || slices.Contains(groups[name], by)
	})
}

// INV-25: a decision that was recorded stays; only a deny moves an approved
// ticket, and nothing moves a denied one. Every refusal has a code.
func TestFirstAnswerIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := genTicket(t)
		for _, a := range genAnswers(t) {
			was := got
			recorded, err := approve.Record(got, a, groups)
			if err != nil {
				var r *approve.Refusal
				if !errors.As(err, &r) || r.Code == "" || r.Text == "" {
					t.Fatalf("refusal without code: %v", err)
				}
				continue
			}
			got = approve.Apply(got, recorded)
			if was.State == approve.Denied || was.State == approve.Approved && got.State != approve.Denied {
				t.Fatalf("%s became %s by %+v", was.State, got.State, a)
			}
			if again := approve.Apply(got, recorded); !cmp.Equal(got, again) {
				t.Fatalf("the same entry twice changed the ticket:\n%s", cmp.Diff(got, again))
			}
		}
	})
}

// Two replicas may record in any order: without a deny the same people make
// the same state, and one deny among answers in time denies in every order.
func TestOrderOfAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tk := genTicket(t)
		var recorded []approve.Answer
		denied := false
		for _, a := range genAnswers(t) {
			if r, err := approve.Record(tk, a, groups); err == nil {
				recorded, denied = append(recorded, r), denied || !r.Approve
			}
		}
		fold := func(as []approve.Answer) approve.State {
			got := tk
			for _, a := range as {
				got = approve.Apply(got, a)
			}
			return got.State
		}
		first := fold(recorded)
		other := fold(rapid.Permutation(recorded).Draw(t, "other order"))
		if first != other {
			t.Fatalf("%s in one order, %s in another", first, other)
		}
		if denied && first != approve.Denied {
			t.Fatalf("a recorded deny left the ticket %s", first)
		}
	})
}

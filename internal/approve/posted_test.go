package approve_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
)

func TestChores(t *testing.T) {
	const m = time.Minute
	now := at(10 * m)
	open := approve.Card{Ticket: "t7", State: approve.Open, Gist: "asked"}
	ended := approve.Card{Ticket: "t7", State: approve.Denied, Gist: "denied", Final: true, Notes: []approve.Note{{ID: "a", Text: "denied"}}}
	running := ended
	running.Final = false
	msg := approve.Message{Channel: "C1", ID: "1.1", Shows: "asked"}
	gone := msg
	gone.Gone = true
	with := func(ms ...approve.Message) approve.Posted { return approve.Posted{Ticket: "t7", Messages: ms} }
	failed := func(p approve.Posted, n int, ago time.Duration) approve.Posted {
		p.Failures, p.Tried = n, now.Add(-ago)
		return p
	}
	begun := func(by string, ago time.Duration) approve.Posted {
		return approve.Posted{Ticket: "t7", Begun: now.Add(-ago), By: by}
	}
	shown := with(approve.Message{Channel: "C1", ID: "1.1", Shows: "denied"})
	said := shown
	said.Noted = []string{"a"}
	closed := said
	closed.Closed = true
	limited := with()
	limited.NotBefore = now.Add(20 * time.Second)
	stale := limited
	stale.NotBefore = now.Add(48 * time.Hour)

	cases := map[string]struct {
		reason string
		posted approve.Posted
		card   approve.Card
		looked time.Duration
		want   approve.Chore
	}{
		"New":              {"an open card that nobody posted is posted", with(), open, 0, approve.Post},
		"EndedUnposted":    {"a ticket that ended before anybody saw it is not shown", with(), running, 0, approve.Nothing},
		"Standing":         {"what was seen a moment ago is left alone", with(msg), open, 30 * time.Second, approve.Nothing},
		"LookAgain":        {"an open card may have been deleted", with(msg), open, m, approve.Look},
		"Deleted":          {"a deleted card of an open ticket is posted again", with(gone), open, 0, approve.Post},
		"DeletedOften":     {"who deletes it three times does not want it", with(gone, gone, gone), open, 0, approve.Nothing},
		"DeletedAndOver":   {"a deleted card of an ended ticket needs no one", with(gone), ended, 0, approve.Close},
		"OtherShown":       {"what it says is not what is so", with(msg), running, 0, approve.Update},
		"StrayShown":       {"each of two messages is brought up to date", with(approve.Message{Channel: "C1", ID: "0.9", Shows: ""}, approve.Message{Channel: "C1", ID: "1.1", Shows: "denied"}), running, 0, approve.Update},
		"Note":             {"what happened is said once the card shows it", shown, ended, 0, approve.Say},
		"NoteWithoutPlace": {"below a deleted card nothing can be said", with(gone), running, 0, approve.Nothing},
		"Close":            {"said and shown: closed", said, ended, 0, approve.Close},
		"SeenInFuture":     {"a clock that was set back must not hide for a day that it was deleted", with(msg), open, -24 * time.Hour, approve.Look},
		"Closed":           {"a closed card is never touched again", closed, ended, time.Hour, approve.Nothing},
		"Reopened":         {"a digest that was closed and is wanted again", approve.Posted{Ticket: "digest", Closed: true}, open, 0, approve.Post},
		"UnderWay":         {"another process posts it just now", begun("b", 10*time.Second), open, 0, approve.Nothing},
		"UnderWayHere":     {"this process knows that it does not, so it looks for it", begun("a", 10*time.Second), open, 0, approve.Find},
		"Lost":             {"a post of which nothing was heard may stand there", begun("b", approve.PostFor), open, 0, approve.Find},
		"LostAndOver":      {"also of a ticket that is over: no live button may stay", begun("b", approve.PostFor), ended, 0, approve.Find},
		"LostInFuture":     {"a clock that was set back must not hide it for ever", begun("b", -m), open, 0, approve.Find},
		"Resting":          {"after a failure it is left alone for a while", failed(with(), 2, 29*time.Second), open, 0, approve.Nothing},
		"Rested":           {"and tried again, for ever", failed(with(), 99, 5*m), open, 0, approve.Post},
		"Limited":          {"a channel that asked to wait is waited for", limited, open, 0, approve.Nothing},
		"LimitedForDays":   {"no channel silences us for days", stale, open, 0, approve.Post},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.posted.Next(tc.card, "a", now.Add(-tc.looked), now); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPostedAfter(t *testing.T) {
	p := approve.Posted{Ticket: "t7"}.After(errors.New("x"), "not in the channel", at(0)).After(errors.New("x"), "again", at(time.Minute))
	want := approve.Posted{Ticket: "t7", Failures: 2, Tried: at(time.Minute), LastError: "again"}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("two failures, -want +got:\n%s", diff)
	}
	limited := p.After(&approve.Limited{After: 30 * time.Second}, "limited", at(2*time.Minute))
	if limited.Failures != 2 || !limited.NotBefore.Equal(at(2*time.Minute+30*time.Second)) {
		t.Errorf("to be asked to wait is no failure: %+v", limited)
	}
	for _, rest := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		limited = limited.After(&approve.Limited{After: time.Second}, "limited", at(0))
		if got := limited.NotBefore.Sub(at(0)); got != rest {
			t.Errorf("asked to wait %d times in a row: waits %s, want %s", limited.Limits, got, rest)
		}
	}
	if got := p.After(&approve.Limited{After: time.Hour}, "limited", at(0)).NotBefore.Sub(at(0)); got != 5*time.Minute {
		t.Errorf("asked for an hour: waits %s, want what a failure waits at most", got)
	}
	if diff := cmp.Diff(approve.Posted{Ticket: "t7"}, limited.After(nil, "", at(3*time.Minute))); diff != "" {
		t.Errorf("a success, -want +got:\n%s", diff)
	}
}

func TestPostedWith(t *testing.T) {
	one := approve.Posted{}.With(approve.Message{Channel: "C1", ID: "1"})
	two := one.With(approve.Message{Channel: "C1", ID: "2"}).With(approve.Message{Channel: "C1", ID: "1", Shows: "x"})
	want := []approve.Message{{Channel: "C1", ID: "1", Shows: "x"}, {Channel: "C1", ID: "2"}}
	if diff := cmp.Diff(want, two.Messages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(one.Messages) != 1 || one.Messages[0].Shows != "" {
		t.Errorf("With changed what it was given: %+v", one)
	}
}

func TestBackoff(t *testing.T) {
	want := map[int]time.Duration{0: 15 * time.Second, 1: 15 * time.Second, 2: 30 * time.Second, 3: time.Minute, 5: 4 * time.Minute, 6: 5 * time.Minute, 1 << 40: 5 * time.Minute}
	for n, d := range want {
		if got := approve.Backoff(n); got != d {
			t.Errorf("Backoff(%d) = %s, want %s", n, got, d)
		}
	}
}

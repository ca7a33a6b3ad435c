package fakeslack_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// TestCard posts, changes, answers in the thread, tells one person and finds it
// again, with the real client.
func TestCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ts := w.post(t, slack.MsgOptionText("Approve checkout", false), card("T1", "checkout misses its SLO"), slack.MsgOptionDisableLinkUnfurl())
	if want := "4102488000.000000"; ts != want {
		t.Errorf("ts %s, want %s, which is the clock's", ts, want)
	}
	if _, err := w.slack.Click(ctx, "U1", ops, ts, "nothing"); !errors.Is(err, fakeslack.ErrNoButton) {
		t.Errorf("a click on nothing: %v", err)
	}
	w.slack.AddPerson(fakeslack.Person{ID: "U1", Username: "ann"})
	if _, err := w.api.PostEphemeralContext(ctx, ops, "U1", slack.MsgOptionText("not you", false)); err != nil {
		t.Error(err)
	}
	reply := w.post(t, slack.MsgOptionText("a note", false), slack.MsgOptionTS(ts))
	if _, _, _, err := w.api.UpdateMessageContext(ctx, ops, ts, slack.MsgOptionText("Approved", false), closed("approved by ann")); err != nil {
		t.Fatal(err)
	}
	link, err := w.api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: ops, Ts: ts})
	if want := "https://lab.slack.com/archives/" + ops + "/p4102488000000000"; err != nil || link != want {
		t.Errorf("permalink %q, %v, want %q", link, err, want)
	}

	got := w.slack.Messages(ops)
	if len(got) != 1 {
		t.Fatalf("%d messages, want 1", len(got))
	}
	m := got[0]
	if m.Shown() != "approved by ann" || m.Text != "Approved" || m.Edits != 1 || len(m.Buttons) != 0 || m.Deleted {
		t.Errorf("it shows %q (%+v)", m.Shown(), m)
	}
	if diff := cmp.Diff(map[string]string{"unfurl_links": "false"}, m.Unfurl); diff != "" {
		t.Errorf("unfurl: -want, +got:\n%s", diff)
	}
	if len(m.Replies) != 1 || m.Replies[0].TS != reply || m.Replies[0].Text != "a note" {
		t.Errorf("replies %+v", m.Replies)
	}
	e := w.slack.Ephemerals(ops)
	if len(e) != 1 || e[0].User != "U1" || e[0].Text != "not you" {
		t.Errorf("ephemerals %+v", e)
	}
	msgs, _, _, err := w.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: ops, Timestamp: ts})
	if err != nil || len(msgs) != 2 || msgs[0].Timestamp != ts || msgs[1].Timestamp != reply {
		t.Errorf("replies as the client sees them: %v, %v", msgs, err)
	}
}

// TestFound: a post whose answer was lost is found by its block_id.
func TestFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post(t, card("T0", "before"))
	w.pass(time.Minute)
	w.slack.Fail("chat.postMessage", 1, fakeslack.Fault{DropReply: true})
	if _, _, err := w.api.PostMessageContext(t.Context(), ops, card("T1", "lost")); err == nil {
		t.Fatal("the answer was not lost")
	}
	history, err := w.api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: ops, Oldest: "4102488001.000000"})
	if err != nil {
		t.Fatal(err)
	}
	if len(history.Messages) != 1 {
		t.Fatalf("%d messages since, want 1", len(history.Messages))
	}
	var ids []string
	for _, b := range history.Messages[0].Blocks.BlockSet {
		ids = append(ids, b.ID())
	}
	if len(ids) != 2 || ids[0] == "" || ids[1] != "setpoint/T1/digest" {
		t.Errorf("block ids %q", ids)
	}
	calls := w.slack.Calls()
	if len(calls) != 3 || !calls[1].Done || calls[1].Heard || calls[1].TS != history.Messages[0].Timestamp {
		t.Errorf("calls %+v", calls)
	}
}

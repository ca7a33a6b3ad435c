package slack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// TestEmptyAnswer: an answer that is well and names no message is no delivery, or
// the page would count as told and the next receiver would never be asked.
func TestEmptyAnswer(t *testing.T) {
	cases := map[string]struct {
		reason, empty string
		ref           string
		page          escalate.Page
	}{
		"Post":   {"a post", "chat.postMessage", "", page()},
		"Update": {"a change", "chat.update", fmt.Sprintf("%s/1.000001/%d/%s", fakeslack.DefaultChannel, page().Since.Unix(), escalate.CannotAct), page()},
		"Reply":  {"what is said below", "chat.postMessage", fmt.Sprintf("%s/1.000001/%d/%s", fakeslack.DefaultChannel, page().Since.Unix(), escalate.Blind), page()},
		"End":    {"an end", "chat.update", fmt.Sprintf("%s/1.000001/%d/%s", fakeslack.DefaultChannel, page().Since.Unix(), escalate.CannotAct), ended(page())},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ts := `"1.000001"`
				if strings.HasSuffix(r.URL.Path, tc.empty) {
					ts = `""`
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":%s,"messages":[]}`, fakeslack.DefaultChannel, ts)
			}))
			t.Cleanup(srv.Close)
			w := &world{t: t}
			ref, err := w.receiver(srv.URL, fakeslack.DefaultChannel).Send(t.Context(), tc.page, tc.ref)
			if err == nil {
				t.Errorf("%s without a message counts as delivered, with ref %q", tc.reason, ref)
			}
		})
	}
}

// TestReplyIsPlain: what is said below a message is in blocks of plain text, like
// the message: in mere text Slack makes links and emoji of a stranger's words.
func TestReplyIsPlain(t *testing.T) {
	w := newWorld(t)
	if err := w.send(page()); err != nil {
		t.Fatal(err)
	}
	changed := reason(page(), escalate.Blind)
	changed.Lead.Why = "why: the target said *done*, see http://evil.example/login :fire:"
	if err := w.send(changed); err != nil {
		t.Fatal(err)
	}
	replies := w.Messages(fakeslack.DefaultChannel)[0].Replies
	if len(replies) != 1 {
		t.Fatalf("%d replies", len(replies))
	}
	blocks := string(replies[0].Blocks)
	if !strings.Contains(blocks, `"plain_text"`) || strings.Contains(blocks, `"mrkdwn"`) || !strings.Contains(blocks, "evil.example") {
		t.Errorf("the reply is %q, blocks %s", replies[0].Text, blocks)
	}
}

// TestTwinsEnd: a page whose post was not answered, and could not be looked for,
// stands there twice. Both say when it is over: neither asks for help for ever.
func TestTwinsEnd(t *testing.T) {
	w := newWorld(t)
	w.Fail("chat.postMessage", 1, fakeslack.Fault{DropReply: true})
	if err := w.send(page()); err == nil {
		t.Fatal("no error although nobody knows whether it was posted")
	}
	w.Fail("conversations.history", 1, fakeslack.Fault{Status: 500})
	if err := w.send(page()); err != nil {
		t.Fatal(err)
	}
	if err := w.send(ended(page())); err != nil {
		t.Fatal(err)
	}
	want := []string{"over: checkout: recovered", "  over: recovered", "over: checkout: recovered", "  over: recovered"}
	if diff := cmp.Diff(want, w.shown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestForgedMark: a message of another app that bears the mark of a page, and
// cannot be changed, does not stand in for ours.
func TestForgedMark(t *testing.T) {
	const forged, ours = "9.000009", "1.000001"
	mark := fmt.Sprintf("setpoint-page/%d/e12", page().Since.Unix())
	var mu sync.Mutex
	var updated []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "conversations.history"):
			message := `{"type":"message","ts":%q,"blocks":[{"type":"header","block_id":%q,"text":{"type":"plain_text","text":"x"}}]}`
			_, _ = fmt.Fprintf(w, `{"ok":true,"messages":[`+message+`,`+message+`]}`, forged, mark, ours, mark)
		case r.Form.Get("ts") == forged:
			_, _ = fmt.Fprint(w, `{"ok":false,"error":"cant_update_message"}`)
		default:
			mu.Lock()
			updated = append(updated, r.Form.Get("ts")+r.Form.Get("thread_ts"))
			mu.Unlock()
			_, _ = fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":%q}`, fakeslack.DefaultChannel, ours)
		}
	}))
	t.Cleanup(srv.Close)
	w := &world{t: t}
	r := w.receiver(srv.URL, fakeslack.DefaultChannel)
	if _, err := r.Send(t.Context(), ended(page()), ""); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{ours, ours}, updated); diff != "" {
		t.Errorf("our message was not ended: -want +got:\n%s", diff)
	}
}

// TestOtherChannel: after the channel was changed an open page is where people look
// now, and an end is where it was posted.
func TestOtherChannel(t *testing.T) {
	const second = "C0000NEW00"
	s := fakeslack.New(fakeslack.Options{Now: func() time.Time { return now }, Channels: []fakeslack.Channel{{ID: fakeslack.DefaultChannel}, {ID: second}}})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(s.Close)
	w := &world{Slack: s, t: t}
	w.r = w.receiver(srv.URL, fakeslack.DefaultChannel)
	if err := w.send(page()); err != nil {
		t.Fatal(err)
	}
	first := w.ref
	w.r = w.receiver(srv.URL, second)
	if _, err := w.r.Send(t.Context(), ended(page()), first); err != nil {
		t.Fatal(err)
	}
	if got := w.shown(); len(got) != 2 || got[0] != "over: checkout: recovered" {
		t.Errorf("the old channel shows %q", got)
	}
	if err := w.send(page()); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Messages(second)); got != 1 {
		t.Errorf("the new channel has %d messages", got)
	}
	if got := w.shown(); got[0] != "over: checkout: a newer message shows it" {
		t.Errorf("the channel that was left shows %q", got)
	}
}

package fakeslack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// TestControl: another process does what the Go methods do.
func TestControl(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	ctx := t.Context()
	ts := w.post(t, card("T1", "words"))
	said := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	post := func() string {
		_, _, err := w.api.PostMessageContext(ctx, ops, slack.MsgOptionText("x", false))
		return said(err)
	}
	update := func() string {
		_, _, _, err := w.api.UpdateMessageContext(ctx, ops, ts, slack.MsgOptionText("x", false))
		return said(err)
	}
	steps := []struct {
		method, path, body string
		status             int
		do                 func() string
		want               string
	}{
		{"PUT", "/control/fault?method=chat.update&next=1", `{"error":"message_not_found"}`, 204, update, "message_not_found"},
		{"PUT", "/control/fault?method=chat.postMessage", `{"status":429,"retryAfter":9}`, 204, post, "slack rate limit exceeded, retry after 9s"},
		{"DELETE", "/control/fault?method=chat.postMessage", "", 204, post, ""},
		{"PUT", "/control/fault?method=*&for=10m", `{"error":"fatal_error"}`, 204, post, "fatal_error"},
		{"GET", "/control/calls", "", 200, func() string { w.pass(10 * time.Minute); return post() }, ""},
		{"PUT", "/control/fault?method=*&for=-1m", `{"error":"x"}`, 400, post, ""},
		{"PUT", "/control/archive", "", 204, post, "is_archived"},
		{"PUT", "/control/archive?off=true", "", 204, post, ""},
		{"PUT", "/control/kick?channel=" + ops, "", 204, post, "not_in_channel"},
		{"PUT", "/control/kick?channel=" + ops + "&off=true", "", 204, post, ""},
		{"PUT", "/control/revoke", "", 204, post, "token_revoked"},
		{"PUT", "/control/revoke?token=bot&off=true", "", 204, post, ""},
		{"PUT", "/control/scope?scope=chat:write", "", 204, post, "missing_scope"},
		{"PUT", "/control/scope?scope=chat:write&off=true", "", 204, post, ""},
		{"DELETE", "/control/message?ticket=T1", "", 204, update, "message_not_found"},
		{"PUT", "/control/revoke?token=user", "", 400, post, ""},
		{"PUT", "/control/kick?channel=C404", "", 400, post, ""},
		{"PUT", "/control/fault?method=chat.udpate", `{"error":"x"}`, 400, post, ""},
		{"PUT", "/control/fault?method=chat.postMessage", `{"eror":"x"}`, 400, post, ""},
		{"PUT", "/control/fault?method=chat.postMessage", `{}`, 400, post, ""},
		{"PUT", "/control/fault?method=chat.postMessage&next=0", `{"error":"x"}`, 400, post, ""},
		{"DELETE", "/control/message?ticket=T404", "", 400, post, ""},
		{"POST", "/control/redeliver?envelope=x", "", 400, post, ""},
	}
	for _, s := range steps {
		if status, text := w.control(t, s.method, s.path, s.body); status != s.status {
			t.Errorf("%s %s: HTTP %d %s, want %d", s.method, s.path, status, text, s.status)
		}
		if got := s.do(); got != s.want {
			t.Errorf("after %s %s %s the client gets %q, want %q", s.method, s.path, s.body, got, s.want)
		}
	}
}

// TestControlClick: a click by ticket, over a socket, and what is shown of it.
func TestControlClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.listen(t, always)
	w.connected(t, 1)
	w.post(t, card("T1", "words"))
	status, text := w.control(t, "POST", "/control/click", `{"user":"U1","ticket":"T1","action":"approve","via":"socket"}`)
	var o fakeslack.Outcome
	if err := json.Unmarshal([]byte(text), &o); err != nil || status != http.StatusOK || o.Shown != fakeslack.ShownOK {
		t.Fatalf("HTTP %d %s, %v", status, text, err)
	}
	if clicks, _ := l.seen(); len(clicks) != 1 || clicks[0] != o.Envelope+" T1 digest" {
		t.Errorf("clicks %q", clicks)
	}
	for _, body := range []string{
		`{"ticket":"T1","action":"approve"}`, `{"user":"U1","ticket":"T2","action":"approve"}`, `{"user":"U1","ticket":"T1","action":"settle"}`,
		`{"user":"U1","ticket":"T1","action":"approve","via":"pigeon"}`, `{"user":"U1","tiket":"T1"}`,
	} {
		if status, text := w.control(t, "POST", "/control/click", body); status != http.StatusBadRequest {
			t.Errorf("%s: HTTP %d %s", body, status, text)
		}
	}
	if _, text := w.control(t, "GET", "/control/messages", ""); !strings.Contains(text, `"value":"T1 digest"`) || !strings.Contains(text, `"ephemerals":[]`) {
		t.Errorf("messages %s", text)
	}
	if _, text := w.control(t, "GET", "/control/envelopes", ""); !strings.Contains(text, o.Envelope) {
		t.Errorf("envelopes %s", text)
	}
	if _, text := w.control(t, "GET", "/control/calls", ""); !strings.Contains(text, `"chat.postMessage"`) {
		t.Errorf("calls %s", text)
	}
	if status, _ := w.control(t, "POST", "/control/disconnect", ""); status != http.StatusNoContent {
		t.Errorf("disconnect: HTTP %d", status)
	}
	eventually(t, "it connects again", func() bool { return w.slack.Opened() == 2 && w.slack.Connections() == 1 })
}

// TestHistory reads a channel page by page.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []string
	for i := range 5 {
		all = append(all, w.post(t, slack.MsgOptionText(fmt.Sprint(i), false)))
		w.pass(time.Minute)
	}
	w.post(t, slack.MsgOptionText("a note", false), slack.MsgOptionTS(all[3]))
	w.slack.Delete(ops, all[1])
	w.slack.Delete(ops, all[3])
	cases := map[string]struct {
		reason string
		change func(*slack.GetConversationHistoryParameters)
		want   []string
	}{
		"All":       {"Newest first, no replies; of a deleted one with replies a stone is left.", func(*slack.GetConversationHistoryParameters) {}, []string{"4", "This message was deleted.", "2", "0"}},
		"Oldest":    {"The oldest itself stands outside.", func(p *slack.GetConversationHistoryParameters) { p.Oldest = all[2] }, []string{"4", "This message was deleted."}},
		"Inclusive": {"Unless it is asked for.", func(p *slack.GetConversationHistoryParameters) { p.Oldest, p.Inclusive = all[2], true }, []string{"4", "This message was deleted.", "2"}},
		"Latest":    {"So does the latest.", func(p *slack.GetConversationHistoryParameters) { p.Latest = all[2] }, []string{"0"}},
		"One": {"This is how one message is looked at.", func(p *slack.GetConversationHistoryParameters) {
			p.Oldest, p.Latest, p.Inclusive, p.Limit = all[2], all[2], true, 1
		}, []string{"2"}},
		"Between": {"Timestamps need no fraction.", func(p *slack.GetConversationHistoryParameters) { p.Oldest = "4102488001" }, []string{"4", "This message was deleted.", "2"}},
	}
	for name, tc := range cases {
		for _, limit := range []int{0, 1, 2} {
			p := slack.GetConversationHistoryParameters{ChannelID: ops, Limit: limit}
			tc.change(&p)
			var got []string
			for {
				h, err := w.api.GetConversationHistoryContext(t.Context(), &p)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if p.Limit > 0 && len(h.Messages) > p.Limit {
					t.Errorf("%s: %d messages on a page of %d", name, len(h.Messages), p.Limit)
				}
				for _, m := range h.Messages {
					got = append(got, m.Text)
				}
				if p.Cursor = h.ResponseMetaData.NextCursor; p.Cursor == "" {
					break
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, pages of %d: %s -want, +got:\n%s", name, limit, tc.reason, diff)
			}
		}
	}
	for _, bad := range []slack.GetConversationHistoryParameters{{ChannelID: ops, Limit: 1000}, {ChannelID: ops, Cursor: "x"}, {ChannelID: "C404"}} {
		if _, err := w.api.GetConversationHistoryContext(t.Context(), &bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// TestChannelAndPeople: what an app asks of a channel and of somebody.
func TestChannelAndPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.api.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: ops})
	if err != nil || c.Name != "ops" || !c.IsMember || c.IsArchived {
		t.Errorf("%+v, %v", c, err)
	}
	w.slack.Archive(ops, true)
	w.slack.Kick(ops, true)
	if c, err = w.api.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: ops}); err != nil || c.IsMember || !c.IsArchived {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := w.api.GetUserInfoContext(t.Context(), "U1"); err == nil {
		t.Error("a stranger is known")
	}
	w.slack.AddPerson(fakeslack.Person{ID: "U1", Username: "ann", Team: "T9"})
	u, err := w.api.GetUserInfoContext(t.Context(), "U1")
	if err != nil || u.Name != "ann" || u.TeamID != "T9" || u.IsBot {
		t.Errorf("%+v, %v", u, err)
	}
	a, err := w.api.AuthTestContext(t.Context())
	if err != nil || a.TeamID != fakeslack.DefaultTeam || a.UserID != fakeslack.Bot {
		t.Errorf("%+v, %v", a, err)
	}
	if scopes := a.Header.Get("X-OAuth-Scopes"); !strings.HasPrefix(scopes, "chat:write,") {
		t.Errorf("scopes %q", scopes)
	}
}

// TestTicketOnce: a socket's ticket opens one socket.
func TestTicketOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, ws, err := w.api.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(ws)
	if err != nil || "http://"+u.Host != w.url || u.Scheme != "ws" {
		t.Fatalf("%s, %v", ws, err)
	}
	// A plain GET is no WebSocket, but it uses the ticket up.
	if status, _ := w.control(t, "GET", u.RequestURI(), ""); status != http.StatusBadRequest {
		t.Errorf("the first time: HTTP %d", status)
	}
	if status, _ := w.control(t, "GET", u.RequestURI(), ""); status != http.StatusUnauthorized {
		t.Errorf("the second time: HTTP %d", status)
	}
}

// TestUniqueTimestamps: messages of one instant have timestamps of their own.
func TestUniqueTimestamps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.post(t, slack.MsgOptionText("a", false)), w.post(t, slack.MsgOptionText("b", false))
	w.pass(-time.Hour)
	c := w.post(t, slack.MsgOptionText("c", false))
	if diff := cmp.Diff([]string{"4102488000.000000", "4102488000.000001", "4102488000.000002"}, []string{a, b, c}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestUpdateTakesBlocks: text without blocks takes the buttons away.
func TestUpdateTakesBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.post(t, card("T1", "words"))
	if _, _, _, err := w.api.UpdateMessageContext(t.Context(), ops, ts, slack.MsgOptionText("over", false)); err != nil {
		t.Fatal(err)
	}
	if m := w.slack.Messages(ops)[0]; len(m.Buttons) != 0 || m.Shown() != "over" {
		t.Errorf("it shows %q with %v", m.Shown(), m.Buttons)
	}
}

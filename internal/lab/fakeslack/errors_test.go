package fakeslack_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

func plain(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

func sections(n int, words string) slack.MsgOption {
	var blocks []slack.Block
	for range n {
		blocks = append(blocks, slack.NewSectionBlock(plain(words), nil, nil))
	}
	return slack.MsgOptionBlocks(blocks...)
}

func button(id, value string) slack.MsgOption {
	return slack.MsgOptionBlocks(slack.NewActionBlock("", slack.NewButtonBlockElement(id, value, plain("Go"))))
}

// TestRefusedContent: the documented limits, each just kept and just broken.
func TestRefusedContent(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	confirmed := func(text string) slack.MsgOption {
		b := slack.NewButtonBlockElement("a", "v", plain("Go"))
		b.Confirm = slack.NewConfirmationBlockObject(plain("Sure?"), plain(text), plain("Yes"), plain("No"))
		return slack.MsgOptionBlocks(slack.NewActionBlock("", b))
	}
	two := func(a, b string) slack.MsgOption {
		return slack.MsgOptionBlocks(
			slack.NewSectionBlock(plain("x"), nil, nil, slack.SectionBlockOptionBlockID(a)),
			slack.NewSectionBlock(plain("x"), nil, nil, slack.SectionBlockOptionBlockID(b)))
	}
	cases := map[string]struct {
		reason  string
		option  slack.MsgOption
		refused string
		says    string
	}{
		"Nothing":         {"An empty message is none.", slack.MsgOptionText("", false), "no_text", ""},
		"Text":            {"Text alone is fine.", slack.MsgOptionText("x", false), "", ""},
		"Blocks":          {"50 blocks are allowed.", sections(50, "x"), "", ""},
		"TooManyBlocks":   {"51 are not.", sections(51, "x"), "invalid_blocks", "no more than 50 items"},
		"Section":         {"3000 characters, not bytes.", sections(1, strings.Repeat("ä", 3000)), "", ""},
		"SectionTooLong":  {"3001 are not.", sections(1, x(3001)), "invalid_blocks", "/blocks/0/text/text"},
		"SectionEmpty":    {"Empty text is refused.", sections(1, ""), "invalid_blocks", "more than 0 characters"},
		"AllTooLong":      {"All blocks together have a limit of their own.", sections(5, x(2900)), "msg_blocks_too_long", ""},
		"Header":          {"A header has 150.", slack.MsgOptionBlocks(slack.NewHeaderBlock(plain(x(150)))), "", ""},
		"HeaderTooLong":   {"151 are not a header.", slack.MsgOptionBlocks(slack.NewHeaderBlock(plain(x(151)))), "invalid_blocks", "less than 151"},
		"Value":           {"A value has 2000.", button("a", x(2000)), "", ""},
		"ValueTooLong":    {"2001 are none.", button("a", x(2001)), "invalid_blocks", "/value"},
		"ActionID":        {"An action id has 255.", button(x(255), "v"), "", ""},
		"ActionIDTooLong": {"256 are none.", button(x(256), "v"), "invalid_blocks", "/action_id"},
		"BlockID":         {"A block id has 255.", two(x(255), "b"), "", ""},
		"BlockIDTooLong":  {"256 are none.", two(x(256), "b"), "invalid_blocks", "/block_id"},
		"BlockIDTwice":    {"Block ids are unique in a message.", two("b", "b"), "invalid_blocks", "not unique"},
		"ActionIDTwice": {"Action ids are unique in a block.", slack.MsgOptionBlocks(slack.NewActionBlock("",
			slack.NewButtonBlockElement("a", "1", plain("A")), slack.NewButtonBlockElement("a", "2", plain("B")))), "invalid_blocks", "not unique in its block"},
		"LabelTooLong":   {"A button's text has 75.", slack.MsgOptionBlocks(slack.NewActionBlock("", slack.NewButtonBlockElement("a", "v", plain(x(76))))), "invalid_blocks", "less than 76"},
		"Confirm":        {"A question has 300.", confirmed(x(300)), "", ""},
		"ConfirmTooLong": {"301 are too many.", confirmed(x(301)), "invalid_blocks", "/confirm/text"},
		"NoActions":      {"An actions block without elements is refused.", slack.MsgOptionBlocks(slack.NewActionBlock("b")), "invalid_blocks", "from 1 to 25"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, _, err := w.api.PostMessageContext(t.Context(), ops, tc.option)
			if tc.refused == "" {
				if err != nil || len(w.slack.Messages(ops)) != 1 {
					t.Errorf("%s got %v", tc.reason, err)
				}
				return
			}
			var said slack.SlackErrorResponse
			if !errors.As(err, &said) || said.Err != tc.refused {
				t.Fatalf("%s got %v, want %s", tc.reason, err, tc.refused)
			}
			if !strings.Contains(strings.Join(said.ResponseMetadata.Messages, "\n"), tc.says) {
				t.Errorf("%s it says %q, want %q", tc.reason, said.ResponseMetadata.Messages, tc.says)
			}
			if n := len(w.slack.Messages(ops)); n != 0 {
				t.Errorf("%s %d messages were posted", tc.reason, n)
			}
		})
	}
}

// TestRefusedState: what the workspace refuses, as the real client sees it.
func TestRefusedState(t *testing.T) {
	t.Parallel()
	hello := slack.MsgOptionText("hello", false)
	post := func(w *world, ctx context.Context, _ string) error {
		_, _, err := w.api.PostMessageContext(ctx, ops, hello)
		return err
	}
	update := func(w *world, ctx context.Context, ts string) error {
		_, _, _, err := w.api.UpdateMessageContext(ctx, ops, ts, hello)
		return err
	}
	read := func(w *world, ctx context.Context, _ string) error {
		_, err := w.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: ops})
		return err
	}
	whisper := func(w *world, ctx context.Context, _ string) error {
		_, err := w.api.PostEphemeralContext(ctx, ops, "U404", hello)
		return err
	}
	link := func(w *world, ctx context.Context, ts string) error {
		_, err := w.api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: ops, Ts: ts})
		return err
	}
	archive := func(w *world, _ string) { w.slack.Archive(ops, true) }
	kick := func(w *world, _ string) { w.slack.Kick(ops, true) }
	gone := func(w *world, ts string) { w.slack.Delete(ops, ts) }
	cases := map[string]struct {
		change func(*world, string)
		do     func(*world, context.Context, string) error
		want   string
	}{
		"PostArchived":   {archive, post, "is_archived"},
		"UpdateArchived": {archive, update, "is_inactive"},
		"PostOut":        {kick, post, "not_in_channel"},
		"UpdateOut":      {kick, update, "not_in_channel"},
		"ReadOut":        {kick, read, "not_in_channel"},
		"ReadArchived":   {archive, read, ""},
		"UpdateGone":     {gone, update, "message_not_found"},
		"LinkGone":       {gone, link, "message_not_found"},
		"WhisperUnknown": {func(*world, string) {}, whisper, "user_not_in_channel"},
		"PostPrivateOut": {func(w *world, _ string) {
			w.slack.AddChannel(fakeslack.Channel{ID: ops, Private: true, Out: true})
		}, post, "channel_not_found"},
		"PostElsewhere": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, _, err := w.api.PostMessageContext(ctx, "C404", hello)
			return err
		}, "channel_not_found"},
		"UpdateOthers": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			ts, _ := w.slack.Say("U1", ops, "mine")
			return update(w, ctx, ts)
		}, "cant_update_message"},
		"UpdateTooLong": {func(*world, string) {}, func(w *world, ctx context.Context, ts string) error {
			_, _, _, err := w.api.UpdateMessageContext(ctx, ops, ts, slack.MsgOptionText(strings.Repeat("x", 4001), false))
			return err
		}, "msg_too_long"},
		"ThreadGone": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, _, err := w.api.PostMessageContext(ctx, ops, hello, slack.MsgOptionTS("1.000001"))
			return err
		}, "thread_not_found"},
		"Revoked": {func(w *world, _ string) { w.slack.Revoke(fakeslack.BotToken, true) }, post, "token_revoked"},
		"OtherToken": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, err := w.client("xoxb-other").AuthTestContext(ctx)
			return err
		}, "invalid_auth"},
		"NoToken": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, err := w.client("").AuthTestContext(ctx)
			return err
		}, "not_authed"},
		"AppToken": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, err := w.client(fakeslack.AppToken).AuthTestContext(ctx)
			return err
		}, "not_allowed_token_type"},
		"UnknownMethod": {func(*world, string) {}, func(w *world, ctx context.Context, _ string) error {
			_, err := w.api.GetUserPresenceContext(ctx, "U1")
			return err
		}, "unknown_method"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ts := w.post(t, slack.MsgOptionText("first", false))
			tc.change(w, ts)
			err := tc.do(w, t.Context(), ts)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestMissingScope: the client learns what is missing and what there is.
func TestMissingScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.AddChannel(fakeslack.Channel{ID: "G1", Private: true})
	w.slack.TakeScope("groups:history", true)
	_, err := w.api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "G1"})
	var said slack.SlackErrorResponse
	if !errors.As(err, &said) || said.Err != "missing_scope" || said.Needed != "groups:history" {
		t.Fatalf("got %v, needed %q", err, said.Needed)
	}
	if want := "chat:write,channels:history,channels:read,groups:read,users:read"; said.Provided != want {
		t.Errorf("provided %q, want %q", said.Provided, want)
	}
	if _, err := w.api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: ops}); err != nil {
		t.Errorf("a public channel needs another scope, but: %v", err)
	}
	w.slack.TakeScope("groups:history", false)
	if _, err := w.api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "G1"}); err != nil {
		t.Errorf("with the scope: %v", err)
	}
}

// broken is a connection that ended without an answer.
func broken(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

// TestFaults: each fault as the real client sees it, and what was done.
func TestFaults(t *testing.T) {
	t.Parallel()
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	cases := map[string]struct {
		fault fakeslack.Fault
		is    func(error) bool
		done  bool
		heard bool
	}{
		"Error":       {fakeslack.Fault{Error: "fatal_error"}, func(err error) bool { return err != nil && err.Error() == "fatal_error" }, false, true},
		"Limited":     {fakeslack.Fault{Status: 429, RetryAfter: 7}, func(err error) bool { return errors.As(err, &limited) && limited.RetryAfter == 7*time.Second }, false, true},
		"RateLimited": {fakeslack.Fault{Error: "ratelimited"}, func(err error) bool { return errors.As(err, &limited) && limited.RetryAfter == 30*time.Second }, false, true},
		"Down":        {fakeslack.Fault{Status: 503}, func(err error) bool { return errors.As(err, &status) && status.Code == 503 }, false, true},
		"DropReply":   {fakeslack.Fault{DropReply: true}, func(err error) bool { return broken(err) }, true, false},
		"DropRequest": {fakeslack.Fault{DropRequest: true}, func(err error) bool { return broken(err) }, false, false},
		"Hang":        {fakeslack.Fault{Hang: fakeslack.Duration(time.Hour)}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, false, false},
		"HangDone":    {fakeslack.Fault{Hang: fakeslack.Duration(time.Hour), DropReply: true}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, true, false},
		"Slow":        {fakeslack.Fault{Hang: fakeslack.Duration(time.Millisecond)}, func(err error) bool { return err == nil }, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.slack.Fail("chat.postMessage", 1, tc.fault)
			patience := 10 * time.Second
			if tc.fault.Hang == fakeslack.Duration(time.Hour) {
				patience = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := w.api.PostMessageContext(ctx, ops, slack.MsgOptionText("x", false))
			if !tc.is(err) {
				t.Errorf("the client sees %v", err)
			}
			eventually(t, "the call is journaled", func() bool { return len(w.slack.Calls()) == 1 })
			call := w.slack.Calls()[0]
			if call.Done != tc.done || call.Heard != tc.heard {
				t.Errorf("call %+v, want done %v, heard %v", call, tc.done, tc.heard)
			}
			if n := len(w.slack.Messages(ops)); (n == 1) != tc.done {
				t.Errorf("%d messages", n)
			}
			if _, _, err := w.api.PostMessageContext(t.Context(), ops, slack.MsgOptionText("x", false)); err != nil {
				t.Errorf("the fault was for one request, and the next one gets %v", err)
			}
		})
	}
}

// TestFaultsInOrder: faults of one method come one after the other, as often as
// each was set; others are not met.
func TestFaultsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Fail("auth.test", 2, fakeslack.Fault{Error: "a"})
	w.slack.Fail("auth.test", 0, fakeslack.Fault{Error: "b"})
	var got []string
	try := func() {
		said := ""
		if _, err := w.api.AuthTestContext(t.Context()); err != nil {
			said = err.Error()
		}
		got = append(got, said)
	}
	for range 4 {
		try()
	}
	w.post(t, slack.MsgOptionText("another method", false))
	w.slack.ClearFaults("auth.test")
	try()
	w.slack.Fail(fakeslack.AnyMethod, 1, fakeslack.Fault{Error: "c"})
	try()
	try()
	if diff := cmp.Diff([]string{"a", "a", "b", "b", "", "c", ""}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestJSONBody: Slack takes JSON as well as a form, and no token in a URL.
func TestJSONBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(path, body, auth string) map[string]any {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		if auth != "" {
			req.Header.Set("Authorization", "Bearer "+auth)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var said map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
			t.Fatal(err)
		}
		return said
	}
	body := `{"channel":"` + ops + `","text":"x","blocks":[{"type":"divider","block_id":"mine"}]}`
	if said := post("/api/chat.postMessage", body, fakeslack.BotToken); said["ok"] != true {
		t.Errorf("JSON: %v", said)
	}
	if got := string(w.slack.Messages(ops)[0].Blocks); !strings.Contains(got, `"mine"`) {
		t.Errorf("blocks %s", got)
	}
	if said := post("/api/auth.test?"+url.Values{"token": {fakeslack.BotToken}}.Encode(), "", ""); said["error"] != "not_authed" {
		t.Errorf("a token in the URL: %v", said)
	}
	if said := post("/api/chat.postMessage", "{", fakeslack.BotToken); said["error"] != "invalid_form_data" {
		t.Errorf("no JSON: %v", said)
	}
	if said := post("/api/chat.postMessage", `{"channel":"`+ops+`","blocks":{"type":"divider"}}`, fakeslack.BotToken); said["error"] != "invalid_blocks_format" {
		t.Errorf("no list of blocks: %v", said)
	}
}

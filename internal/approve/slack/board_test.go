package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

var _ reconcile.Board = (*slack.Board)(nil)

// fakeBoard is a board before a Slack on loopback.
func fakeBoard(t *testing.T) (*slack.Board, *fakeslack.Slack, func() *slack.Board) {
	t.Helper()
	fake := fakeslack.New(fakeslack.Options{})
	server := httptest.NewServer(fake.Handler())
	t.Cleanup(func() { fake.Close(); server.Close() })
	another := func() *slack.Board {
		return slack.NewBoard(slack.NewClient(server.URL+"/api/", fakeslack.BotToken, ""), fakeslack.DefaultChannel, "")
	}
	return slack.NewBoard(slack.NewClient(server.URL+"/api", fakeslack.BotToken, ""), fakeslack.DefaultChannel, fakeslack.Bot), fake, another
}

// only is the one message of the channel.
func only(t *testing.T, fake *fakeslack.Slack) fakeslack.Message {
	t.Helper()
	ms := fake.Messages(fakeslack.DefaultChannel)
	if len(ms) != 1 {
		t.Fatalf("%d messages: %+v", len(ms), ms)
	}
	return ms[0]
}

// A card is put up, seen, changed and ended in one message, with what happened
// below it.
func TestBoardLife(t *testing.T) {
	board, fake, another := fakeBoard(t)
	ctx, cards := t.Context(), rendered(t)
	before := time.Now()
	m, err := board.Post(ctx, cards["open"])
	if err != nil {
		t.Fatal(err)
	}
	seen := only(t, fake)
	if want := (approve.Message{Channel: fakeslack.DefaultChannel, ID: seen.TS, Shows: cards["open"].Gist}); m != want {
		t.Errorf("posted %+v, want %+v", m, want)
	}
	if diff := cmp.Diff(map[string]string{"unfurl_links": "false", "unfurl_media": "false"}, seen.Unfurl); diff != "" {
		t.Errorf("unfurling (-want +got):\n%s", diff)
	}
	lead := cards["open"].Lead.Lines()
	if got := strings.SplitN(seen.Shown(), "\n", 6); !slices.Equal(got[:5], lead[:]) {
		t.Errorf("the message begins with %q", got[:5])
	}
	var buttons []string
	for _, b := range seen.Buttons {
		buttons = append(buttons, fmt.Sprint(b.Action, " ", b.Value == "t7 "+cards["open"].Digest, " ", b.Confirm, " ", b.Style))
	}
	if diff := cmp.Diff([]string{"setpoint-approve true true primary", "setpoint-deny true false danger"}, buttons); diff != "" {
		t.Errorf("buttons (-want +got):\n%s", diff)
	}
	if link, err := board.Look(ctx, m); err != nil || !strings.HasPrefix(link, "https://lab.slack.com/archives/") {
		t.Errorf("looked: %q, %v", link, err)
	}
	if err := board.Update(ctx, m, cards["judged"]); err != nil {
		t.Fatal(err)
	}
	for _, n := range cards["judged"].Notes {
		if err := board.Say(ctx, m, n); err != nil {
			t.Fatal(err)
		}
	}
	seen = only(t, fake)
	if seen.Edits != 1 || len(seen.Buttons) != 0 || len(seen.Replies) != len(cards["judged"].Notes) {
		t.Errorf("%d edits, %d buttons, %d replies", seen.Edits, len(seen.Buttons), len(seen.Replies))
	}
	for i, n := range cards["judged"].Notes {
		if got := seen.Replies[i]; got.Shown() != n.Text || got.Thread != m.ID || len(got.Unfurl) != 2 {
			t.Errorf("reply %d is %q, unfurling %v, want %q", i, got.Shown(), got.Unfurl, n.Text)
		}
	}
	// Also a message without buttons is found, by whichever process, with what it shows.
	found, err := another().Find(ctx, "t7", cards["open"].Digest, before)
	if diff := cmp.Diff([]approve.Message{{Channel: m.Channel, ID: m.ID, Shows: cards["judged"].Gist}}, found); err != nil || diff != "" {
		t.Errorf("found (-want +got): %v\n%s", err, diff)
	}
}

// A post whose answer was lost stands there, is an error without a name, and is
// found; what is not of this ticket, these bytes and this bot is not.
func TestBoardFind(t *testing.T) {
	board, fake, another := fakeBoard(t)
	ctx, cards := t.Context(), rendered(t)
	c, before := cards["open"], time.Now()
	fake.Fail("chat.postMessage", 1, fakeslack.Fault{DropReply: true})
	_, err := board.Post(ctx, c)
	var refused *approve.Refused
	var limited *approve.Limited
	if err == nil || errors.As(err, &refused) || errors.As(err, &limited) || errors.Is(err, approve.ErrGone) {
		t.Fatalf("a lost answer is %v", err)
	}
	lost := only(t, fake)
	other := c
	other.Ticket, other.Digest = "t70", strings.Repeat("0", 64)
	for _, c := range []approve.Card{other, cards["digest-many"]} {
		if _, err := board.Post(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	fake.Say("U1", fakeslack.DefaultChannel, "setpoint/t7/"+c.Digest)
	again, err := board.Post(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	for range 450 {
		fake.Say("U1", fakeslack.DefaultChannel, "what is going on?")
	}
	want := []approve.Message{{Channel: fakeslack.DefaultChannel, ID: lost.TS, Shows: c.Gist}, again}
	if found, err := another().Find(ctx, "t7", c.Digest, before); err != nil || !slices.Equal(found, want) {
		t.Errorf("found %+v, %v, want %+v", found, err, want)
	}
	if found, err := board.Find(ctx, "t7", strings.Repeat("0", 64), before); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v for other bytes", found, err)
	}
	if found, err := board.Find(ctx, "t70", other.Digest, before); err != nil || len(found) != 1 {
		t.Errorf("found %+v, %v for t70", found, err)
	}
	if found, err := board.Find(ctx, "t7", "", before); err != nil || !slices.Equal(found, want) {
		t.Errorf("found %+v, %v for t7 whatever its bytes, want %+v", found, err, want)
	}
	if found, err := board.Find(ctx, approve.DigestCard, "", before); err != nil || len(found) != 1 || found[0].Shows != cards["digest-many"].Gist {
		t.Errorf("found %+v, %v for the digest card", found, err)
	}
	if found, err := board.Find(ctx, "t7", c.Digest, before.Add(time.Hour)); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v from before the post was begun", found, err)
	}
	stranger := slack.NewBoard(clientOf(t, fake), fakeslack.DefaultChannel, "U0000OTHER")
	if found, err := stranger.Find(ctx, "t7", c.Digest, before); err != nil || len(found) != 0 {
		t.Errorf("another bot found %+v, %v", found, err)
	}
}

func clientOf(t *testing.T, fake *fakeslack.Slack) *slackgo.Client {
	t.Helper()
	server := httptest.NewServer(fake.Handler())
	t.Cleanup(server.Close)
	return slack.NewClient(server.URL+"/api/", fakeslack.BotToken, "")
}

// S1, S15: what is gone, refused, limited and unknown are four things to the pass.
func TestBoardTroubles(t *testing.T) {
	type trouble struct {
		reason string
		make   func(*fakeslack.Slack, approve.Message)
		gone   []string // the calls that say gone
		code   string   // of a refusal by every other call
		not    []string // the calls that are well all the same
	}
	cases := map[string]trouble{
		"Deleted": {
			reason: "the message is put up again, up to a limit",
			make:   func(f *fakeslack.Slack, m approve.Message) { f.Delete(m.Channel, m.ID) },
			gone:   []string{"update", "look"}, not: []string{"post", "find", "say"},
		},
		"Archived": {
			reason: "nobody sees the channel any more",
			make:   func(f *fakeslack.Slack, m approve.Message) { f.Archive(m.Channel, true) },
			code:   "is_archived is_inactive", not: []string{"look", "find"},
		},
		"Kicked": {
			reason: "the bot was removed from the channel",
			make:   func(f *fakeslack.Slack, m approve.Message) { f.Kick(m.Channel, true) },
			code:   "not_in_channel", not: []string{"look"},
		},
		"Revoked": {
			reason: "the token is no longer one",
			make:   func(f *fakeslack.Slack, _ approve.Message) { f.Revoke(fakeslack.BotToken, true) },
			code:   "token_revoked invalid_auth account_inactive",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			board, fake, _ := fakeBoard(t)
			c := rendered(t)["open"]
			m, err := board.Post(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			tc.make(fake, m)
			for call, err := range everyCall(t.Context(), board, m, c) {
				var refused *approve.Refused
				switch {
				case slices.Contains(tc.not, call):
					if err != nil {
						t.Errorf("%s: %s fails: %v", tc.reason, call, err)
					}
				case slices.Contains(tc.gone, call):
					if !errors.Is(err, approve.ErrGone) {
						t.Errorf("%s: %s says %v, want gone", tc.reason, call, err)
					}
				case !errors.As(err, &refused) || !strings.Contains(tc.code, refused.Code):
					t.Errorf("%s: %s says %v, want refused: %s", tc.reason, call, err, tc.code)
				}
				if err != nil && strings.Contains(err.Error(), fakeslack.BotToken) {
					t.Errorf("%s tells the token: %v", call, err)
				}
			}
		})
	}
}

// everyCall makes each call once and gives what it failed with.
func everyCall(ctx context.Context, b *slack.Board, m approve.Message, c approve.Card) map[string]error {
	errs := map[string]error{}
	_, errs["post"] = b.Post(ctx, c)
	errs["update"] = b.Update(ctx, m, c)
	errs["say"] = b.Say(ctx, m, approve.Note{ID: "answer-1", Text: "approved"})
	_, errs["find"] = b.Find(ctx, c.Ticket, c.Digest, time.Now())
	_, errs["look"] = b.Look(ctx, m)
	return errs
}

// Without the scope to read the channel nobody can tell whether a post stands
// there; the error says what to add.
func TestBoardMissingScope(t *testing.T) {
	board, fake, _ := fakeBoard(t)
	fake.TakeScope("channels:history", true)
	_, err := board.Find(t.Context(), "t7", "", time.Now())
	var refused *approve.Refused
	if !errors.As(err, &refused) || refused.Code != approve.MissingScope || !strings.Contains(err.Error(), "the scope channels:history") {
		t.Errorf("got %v", err)
	}
	if _, err := board.Post(t.Context(), rendered(t)["open"]); err != nil {
		t.Errorf("posting needs no such scope: %v", err)
	}
}

// answered is a board before a server that answers everything alike.
func answered(t *testing.T, h http.HandlerFunc) *slack.Board {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return slack.NewBoard(slack.NewClient(server.URL, "xoxb-1234-hunter2", ""), "C1", "U1")
}

// HTTP 200 is not success, and no answer is taken for one that it is not.
func TestBoardAnswers(t *testing.T) {
	const token = "xoxb-1234-hunter2"
	cases := map[string]struct {
		status     int
		after      string
		body       string
		gone       bool
		refused    string
		limited    time.Duration
		says, only string // only: the one call that is judged
	}{
		"Gone":         {body: `{"ok":false,"error":"message_not_found"}`, gone: true},
		"NotOurs":      {body: `{"ok":false,"error":"cant_update_message"}`, gone: true},
		"TooOld":       {body: `{"ok":false,"error":"edit_window_closed"}`, gone: true},
		"NoThread":     {body: `{"ok":false,"error":"thread_not_found"}`, gone: true},
		"NotInChannel": {body: `{"ok":false,"error":"not_in_channel"}`, refused: "not_in_channel"},
		"Blocks":       {body: `{"ok":false,"error":"invalid_blocks","response_metadata":{"messages":["[ERROR] must be less than 3001 characters"]}}`, refused: "invalid_blocks", says: "must be less than 3001", only: "post update say look"},
		"Scope":        {body: `{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"none"}`, refused: "missing_scope", says: "the scope chat:write"},
		"TokenInError": {body: `{"ok":false,"error":"invalid_auth for ` + token + `"}`, refused: "unnamed_error"},
		"TokenInWords": {body: `{"ok":false,"error":"invalid_arguments","response_metadata":{"messages":["token=` + token + `"]}}`, refused: "invalid_arguments", says: "token=secret", only: "post update say look"},
		"Unsure":       {body: `{"ok":false,"error":"fatal_error"}`, says: "fatal_error"},
		"Internal":     {body: `{"ok":false,"error":"internal_error"}`, says: "internal_error"},
		"LimitedBody":  {body: `{"ok":false,"error":"ratelimited"}`, limited: 30 * time.Second},
		"Limited":      {status: 429, after: "7", body: `{"ok":false,"error":"ratelimited"}`, limited: 7 * time.Second},
		"LimitedMute":  {status: 429, body: "slow down", limited: 30 * time.Second},
		"LimitedLong":  {status: 429, after: "999999", limited: time.Hour},
		"LimitedZero":  {status: 429, after: "0", limited: time.Second},
		"LimitedOdd":   {status: 429, after: "soon", says: "soon"},
		"Down":         {status: 503, body: "<html>xoxb-1234-hunter2</html>", says: "HTTP 503"},
		"Redirect":     {status: 302, says: "HTTP 302"},
		"Empty":        {body: `{}`, says: "not Slack's"},
		"NotOkMute":    {body: `{"ok":false}`, says: "not Slack's"},
		"OkMute":       {body: `{"ok":true}`, says: "not Slack's", only: "post update say look"},
		"Null":         {body: `null`, says: "not Slack's"},
		"HTML":         {body: "<html>sign in</html>", says: "invalid character"},
		"Nothing":      {body: "", says: "EOF"},
		"HalfJSON":     {body: `{"ok":true,"ts":"1.2"`, says: "EOF"},
		"BadLink":      {body: `{"ok":true,"permalink":"javascript:alert(1)"}`, says: "not Slack's", only: "look"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			board := answered(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Location", "http://127.0.0.1:1/")
				if tc.after != "" {
					w.Header().Set("Retry-After", tc.after)
				}
				if tc.status != 0 {
					w.WriteHeader(tc.status)
				}
				_, _ = io.WriteString(w, tc.body)
			})
			for call, err := range everyCall(t.Context(), board, approve.Message{Channel: "C1", ID: "1.2"}, rendered(t)["open"]) {
				if tc.only != "" && !strings.Contains(tc.only, call) {
					continue
				}
				var refused *approve.Refused
				var limited *approve.Limited
				switch {
				case err == nil:
					t.Fatalf("%s takes it for success", call)
				case errors.Is(err, approve.ErrGone) != tc.gone:
					t.Errorf("%s: %v, gone %t", call, err, tc.gone)
				case errors.As(err, &refused) != (tc.refused != "") || refused != nil && refused.Code != tc.refused:
					t.Errorf("%s: %v, want refused %q", call, err, tc.refused)
				case errors.As(err, &limited) != (tc.limited != 0) || limited != nil && limited.After != tc.limited:
					t.Errorf("%s: %v, want to wait %s", call, err, tc.limited)
				case !strings.Contains(err.Error(), tc.says):
					t.Errorf("%s: %v does not say %q", call, err, tc.says)
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s tells the token: %v", call, err)
				}
			}
		})
	}
}

// A reply to what was deleted meanwhile lands in the channel, and Slack says ok.
func TestBoardSaysGoneForALooseReply(t *testing.T) {
	for name, tc := range map[string]struct {
		thread string
		gone   bool
	}{"Loose": {"", true}, "Threaded": {`,"thread_ts":"1.2"`, false}} {
		t.Run(name, func(t *testing.T) {
			board := answered(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"ok":true,"channel":"C1","ts":"3.4","message":{"type":"message","ts":"3.4"`+tc.thread+`}}`)
			})
			err := board.Say(t.Context(), approve.Message{Channel: "C1", ID: "1.2"}, approve.Note{Text: "sent"})
			if errors.Is(err, approve.ErrGone) != tc.gone || err != nil && !tc.gone {
				t.Errorf("got %v", err)
			}
		})
	}
}

// That nothing was found must not be said of a channel that was not read to its end.
func TestBoardFindReadsToTheEnd(t *testing.T) {
	pages := 0
	board := answered(t, func(w http.ResponseWriter, _ *http.Request) {
		pages++
		_, _ = io.WriteString(w, `{"ok":true,"has_more":true,"messages":[],"response_metadata":{"next_cursor":"more"}}`)
	})
	if found, err := board.Find(t.Context(), "t7", "", time.Now()); err == nil || pages != 20 {
		t.Errorf("found %+v after %d pages", found, pages)
	}
	board = answered(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"has_more":true,"messages":[]}`)
	})
	if found, err := board.Find(t.Context(), "t7", "", time.Now()); err == nil {
		t.Errorf("found %+v, and there is more", found)
	}
}

// What is asked is asked once: the pass decides whether it is asked again.
func TestBoardAsksOnce(t *testing.T) {
	asked := map[string]int{}
	board := answered(t, func(w http.ResponseWriter, req *http.Request) {
		asked[req.URL.Path]++
		http.Error(w, "", http.StatusBadGateway)
	})
	everyCall(t.Context(), board, approve.Message{Channel: "C1", ID: "1.2"}, rendered(t)["open"])
	want := map[string]int{"/chat.postMessage": 2, "/chat.update": 1, "/conversations.history": 1, "/chat.getPermalink": 1}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// silent is a network on which nothing ever comes back: neither head nor body.
type silent struct{ body bool }

func (s silent) Do(req *http.Request) (*http.Response, error) {
	if s.body {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(hang{req.Context()})}, nil
	}
	<-req.Context().Done()
	return nil, req.Context().Err()
}

type hang struct{ ctx context.Context }

func (h hang) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// A Slack that hangs holds a pass up for a bounded time.
func TestBoardHangs(t *testing.T) {
	for name, network := range map[string]silent{"Head": {}, "Body": {body: true}} {
		t.Run(name, func(t *testing.T) {
			c := rendered(t)["open"]
			synctest.Test(t, func(t *testing.T) {
				board := slack.NewBoard(slackgo.New("xoxb-1", slackgo.OptionHTTPClient(network)), "C1", "U1")
				start := time.Now()
				for call, err := range everyCall(t.Context(), board, approve.Message{Channel: "C1", ID: "1.2"}, c) {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", call, err)
					}
				}
				if took := time.Since(start); took > 6*slack.Timeout {
					t.Errorf("five calls took %s", took)
				}
			})
		})
	}
}

// A person who gives up is not a Slack that failed.
func TestBoardCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	board := answered(t, func(http.ResponseWriter, *http.Request) {})
	for call, err := range everyCall(ctx, board, approve.Message{Channel: "C1", ID: "1.2"}, rendered(t)["open"]) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A network that is not there is said in a few words, without the URL.
func TestBoardUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	board := slack.NewBoard(slack.NewClient(server.URL, "xoxb-1", ""), "C1", "U1")
	for call, err := range everyCall(t.Context(), board, approve.Message{Channel: "C1", ID: "1.2"}, rendered(t)["open"]) {
		if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "http://") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// What goes over the wire has no token but in its place, and a time that Slack reads.
func TestBoardRequests(t *testing.T) {
	var oldest, token string
	board := answered(t, func(w http.ResponseWriter, req *http.Request) {
		_ = req.ParseForm()
		oldest, token = req.PostForm.Get("oldest"), req.PostForm.Get("token")+strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		if strings.Contains(req.URL.String(), "hunter2") {
			t.Error("the token stands in the URL")
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "messages": []any{}})
	})
	since := time.Date(2026, 11, 29, 12, 1, 0, 120_000_000, time.UTC)
	if _, err := board.Find(t.Context(), "t7", "", since); err != nil {
		t.Fatal(err)
	}
	if want := "1795953600.120000"; oldest != want || token != "xoxb-1234-hunter2" {
		t.Errorf("oldest %s, want %s; token %q", oldest, want, token)
	}
}

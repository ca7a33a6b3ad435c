package fakeslack_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

const ops = fakeslack.DefaultChannel

var start = time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a Slack on loopback with the real client, on one clock.
type world struct {
	slack *fakeslack.Slack
	url   string
	api   *slack.Client

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T, change ...func(*fakeslack.Options)) *world {
	t.Helper()
	w := &world{now: start}
	o := fakeslack.Options{Now: w.clock, Patience: 10 * time.Second}
	for _, f := range change {
		f(&o)
	}
	w.slack = fakeslack.New(o)
	srv := httptest.NewServer(w.slack.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(w.slack.Close)
	w.url = srv.URL
	w.api = w.client(fakeslack.BotToken)
	return w
}

func (w *world) client(token string) *slack.Client {
	return slack.New(token, slack.OptionAPIURL(w.url+"/api/"), slack.OptionAppLevelToken(fakeslack.AppToken))
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// card are blocks as an approval has them: words and two buttons.
func card(ticket, words string) slack.MsgOption {
	approve := slack.NewButtonBlockElement("approve", ticket+" digest", slack.NewTextBlockObject(slack.PlainTextType, "Approve", false, false))
	approve.Style = slack.StylePrimary
	deny := slack.NewButtonBlockElement("deny", ticket+" digest", slack.NewTextBlockObject(slack.PlainTextType, "Deny", false, false))
	return slack.MsgOptionBlocks(
		slack.NewSectionBlock(slack.NewTextBlockObject(slack.PlainTextType, words, false, false), nil, nil),
		slack.NewActionBlock("setpoint/"+ticket+"/digest", approve, deny),
	)
}

// closed is a card without buttons.
func closed(words string) slack.MsgOption {
	return slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject(slack.PlainTextType, words, false, false), nil, nil))
}

func (w *world) post(t *testing.T, options ...slack.MsgOption) string {
	t.Helper()
	_, ts, err := w.api.PostMessageContext(t.Context(), ops, options...)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// control asks over HTTP, as another process does.
func (w *world) control(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for what happens by itself, by the real clock.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := soon(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

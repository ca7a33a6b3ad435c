package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// link is a handler that is connected to a Slack on loopback.
type link struct {
	t     *testing.T
	w     *world
	slack *fakeslack.Slack
	api   *slackgo.Client
	ts    string
	once  sync.Once
	end   func()

	mu sync.Mutex
	up []bool
}

func connect(t *testing.T, w *world) *link {
	t.Helper()
	f := start(t, w, fakeslack.New(fakeslack.Options{}))
	f.eventually("a connection", func() bool { return f.connected() })
	return f
}

// start runs Socket Mode against a Slack that may not be well yet.
func start(t *testing.T, w *world, fake *fakeslack.Slack) *link {
	t.Helper()
	server := httptest.NewServer(fake.Handler())
	f := &link{t: t, w: w, slack: fake, api: slack.NewClient(server.URL+"/api/", fakeslack.BotToken, fakeslack.AppToken)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.clicks.Socket(ctx, f.api, func(up bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.up = append(f.up, up)
		})
	}()
	f.end = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("Socket did not end")
		}
		fake.Close()
		server.Close()
	}
	t.Cleanup(f.stop)
	return f
}

func (f *link) stop() { f.once.Do(f.end) }

func (f *link) connected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.up) > 0 && f.up[len(f.up)-1]
}

func (f *link) eventually(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	f.t.Fatalf("no %s in time", what)
}

// send puts a payload into envelopes, as Slack would.
func (f *link) send(payload []byte, times int) fakeslack.Outcome {
	f.t.Helper()
	if f.ts == "" {
		button := slackgo.NewButtonBlockElement(approveAction, f.w.value(), slackgo.NewTextBlockObject("plain_text", "Approve", false, false))
		_, ts, err := f.api.PostMessage(fakeslack.DefaultChannel, slackgo.MsgOptionText("card", false), slackgo.MsgOptionBlocks(slackgo.NewActionBlock("b1", button)))
		if err != nil {
			f.t.Fatal(err)
		}
		f.ts = ts
	}
	o, err := f.slack.Press(context.Background(), fakeslack.Press{
		User: onCall, Channel: fakeslack.DefaultChannel, TS: f.ts, Action: approveAction, Via: fakeslack.ViaSocket, Times: times,
		Forge: func(p map[string]any) {
			clear(p)
			if err := json.Unmarshal(payload, &p); err != nil {
				f.t.Error(err)
			}
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}

// An envelope that comes twice is acknowledged twice and decided once.
func TestDuplicateEnvelopes(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t)
	f := connect(t, w)
	o := f.send(w.says(onCall, approveAction).payload(t), 3)
	if o.Shown != ok {
		t.Errorf("the person sees %+v", o)
	}
	if err := f.slack.Redeliver(o.Envelope); err != nil {
		t.Fatal(err)
	}
	f.eventually("four results", func() bool { return w.count(slack.Recorded)+w.count(slack.Refused) == 4 })
	if got := w.answers(); len(got) != 1 || w.count(slack.Recorded) != 1 {
		t.Errorf("answers = %q, results = %v", got, w.results)
	}
}

// Slack closes each socket every few hours, and the network when it likes.
func TestSocketReconnects(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t)
	f := connect(t, w)
	for name, end := range map[string]func(){
		"a warning": func() { f.slack.Disconnect(fakeslack.Warning) },
		"a cut":     f.slack.DropConnections,
	} {
		before := f.slack.Opened()
		end()
		f.eventually("new socket after "+name, func() bool { return f.slack.Opened() > before && f.slack.Connections() == 1 && f.connected() })
	}
	if o := f.send(w.says(onCall, approveAction).payload(t), 1); o.Shown != ok || w.stand().State != approve.Approved {
		t.Errorf("the person sees %+v, the ticket is %q", o, w.stand().State)
	}
}

// Also an answer after which the library gives up: a token can be renewed, a
// workspace can be switched on again. It is said once.
func TestSocketIsTriedForEver(t *testing.T) {
	for name, fault := range map[string]fakeslack.Fault{
		"invalid_auth":  {Error: "invalid_auth"},
		"token_revoked": {Error: "token_revoked"},
		"NotFound":      {Status: 404},
		"Unavailable":   {Status: 503},
		"ratelimited":   {Error: "ratelimited", RetryAfter: 1},
		"Dropped":       {DropRequest: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newWorld(t)
			fake := fakeslack.New(fakeslack.Options{})
			fake.Fail("apps.connections.open", 2, fault)
			f := start(t, w, fake)
			f.eventually("a connection in the end", f.connected)
			f.stop()
			if f.connected() {
				t.Error("it is said to be connected after the end")
			}
			log, _ := w.settled()
			if n := strings.Count(log, "slack is not connected"); n != 1 {
				t.Errorf("said %d times, want once:\n%s", n, log)
			}
			contains(t, "the log", log, "slack is connected")
			if strings.Contains(log, fakeslack.AppToken) || strings.Contains(log, "ticket=ticket") {
				t.Errorf("the log has a secret:\n%s", log)
			}
		})
	}
}

// What is not a click is acknowledged, so that Slack does not send it for hours,
// and what is none of Slack's is skipped.
func TestOtherEnvelopesAreAcknowledged(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t)
	frames := []string{
		`{"type":"hello"}`,
		`{"type":"slash_commands","envelope_id":"E1","payload":{"command":"/x"}}`,
		`{"type":"events_api","envelope_id":"E2","payload":{"type":"event_callback","event":{"type":"of_next_year"}}}`,
		`{"type":"of_next_year","envelope_id":"E3","payload":[1]}`,
		`{"type":"interactive","envelope_id":"E4","payload":{"type":7}}`,
		`{"type":"interactive","envelope_id":"E5","payload":{"type":"block_actions","team":{"id":"T1"},"message":7,"user":{"id":"U1"},"actions":[{"action_id":"x","block_id":"b"}]}}`,
		`{"type":"interactive"}`, `[]`, `7`,
	}
	acks := make(chan string, 10)
	server := httptest.NewServer(raw(frames, acks))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.clicks.Socket(ctx, slack.NewClient(server.URL, "xoxb-1", "xapp-1"), func(bool) {})
	}()
	got := map[string]bool{}
	for len(got) < 5 {
		select {
		case id := <-acks:
			got[id] = true
		case <-time.After(10 * time.Second):
			t.Fatalf("acknowledged %v, want E1 to E5", got)
		}
	}
	cancel()
	<-done
	if w.count(slack.Malformed) != 1 || w.count(slack.Foreign) != 1 || len(w.results) != 2 {
		t.Errorf("results = %v, want one malformed and one foreign", w.results)
	}
}

// raw is a Slack that sends these frames, and tells what is acknowledged.
func raw(frames []string, acks chan<- string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/apps.connections.open", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(rw, `{"ok":true,"url":"ws://%s/link"}`, r.Host)
	})
	mux.HandleFunc("/link", func(rw http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		conn, err := up.Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for _, f := range frames {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(f))
		}
		for {
			var ack struct {
				EnvelopeID string `json:"envelope_id"`
			}
			if conn.ReadJSON(&ack) != nil {
				return
			}
			acks <- ack.EnvelopeID
		}
	})
	return mux
}

// A Slack that hangs up on each connection is not asked without a pause.
func TestShortConnectionsArePaced(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t)
	var opened atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/apps.connections.open", func(rw http.ResponseWriter, r *http.Request) {
		opened.Add(1)
		_, _ = fmt.Fprintf(rw, `{"ok":true,"url":"ws://%s/link"}`, r.Host)
	})
	mux.HandleFunc("/link", func(rw http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		if conn, err := up.Upgrade(rw, r, nil); err == nil {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`))
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
	defer cancel()
	w.clicks.Socket(ctx, slack.NewClient(server.URL, "xoxb-1", "xapp-1"), func(bool) {})
	// The library tries again at once, before it can be held back; on a busy host
	// some times. Without a pause these are hundreds.
	if n := opened.Load(); n < 2 || n > 40 {
		t.Errorf("opened %d connections in 2.5 s, want a few", n)
	}
}

// A stop finishes and acknowledges the click that is under way.
func TestSocketStopFinishesAClick(t *testing.T) {
	t.Parallel()
	w, slow := newWorld(t)
	f := connect(t, w)
	slow.set(300*time.Millisecond, false)
	shown := make(chan fakeslack.Outcome, 1)
	payload := w.says(onCall, approveAction).payload(t)
	go func() { shown <- f.send(payload, 1) }()
	f.eventually("a click under way", slow.asked)
	f.stop()
	if o := <-shown; o.Shown != ok || w.stand().State != approve.Approved {
		t.Errorf("the person sees %+v, the ticket is %q", o, w.stand().State)
	}
}

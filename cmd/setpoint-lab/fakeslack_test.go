package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// within runs out long after everything here should have happened.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestFakeslackClicksOverHTTP: a card is posted by the real client with tokens
// from files, clicked from outside, and the click is signed with the secret.
func TestFakeslackClicksOverHTTP(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"signing.secret": "s3cret\n", "bot.token": "xoxb-mine\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		v, err := slack.NewSecretsVerifier(req.Header, "s3cret")
		if err == nil {
			_, _ = v.Write(body)
			err = v.Ensure()
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		click, parse := slack.InteractionCallbackParse(req)
		if err != nil || parse != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		values <- click.ActionCallback.BlockActions[0].Value
	}))
	t.Cleanup(app.Close)
	url := standIn(t, "fakeslack", "--control", "--interactivity-url", app.URL+"/slack/interactivity",
		"--signing-secret-file", filepath.Join(dir, "signing.secret"), "--bot-token-file", filepath.Join(dir, "bot.token"), "--channel", "C1")
	api := slack.New("xoxb-mine", slack.OptionAPIURL(url+"/api/"))
	button := slack.NewButtonBlockElement("setpoint-approve", "T1 digest", slack.NewTextBlockObject(slack.PlainTextType, "Approve", false, false))
	if _, _, err := api.PostMessageContext(within(t), "C1", slack.MsgOptionText("card", false), slack.MsgOptionBlocks(slack.NewActionBlock("setpoint/T1/digest", button))); err != nil {
		t.Fatal(err)
	}
	code, text := call(t, "POST", url+"/control/click", `{"user": "U1", "ticket": "T1", "action": "setpoint-approve"}`)
	if code != http.StatusOK || !strings.Contains(text, `"shown":"ok"`) {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	if got := <-values; got != "T1 digest" {
		t.Errorf("value %q", got)
	}
	if code, text := call(t, "GET", url+"/control/messages", ""); code != http.StatusOK || !strings.Contains(text, `"setpoint/T1/digest"`) {
		t.Errorf("HTTP %d: %s", code, text)
	}
}

// TestFakeslackOpensSockets: with its own tokens it takes the real Socket Mode
// client; without --control nobody disturbs it.
func TestFakeslackOpensSockets(t *testing.T) {
	url := standIn(t, "fakeslack")
	api := slack.New(fakeslack.BotToken, slack.OptionAPIURL(url+"/api/"), slack.OptionAppLevelToken(fakeslack.AppToken))
	client := socketmode.New(api, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx := within(t)
	go func() { _ = client.RunContext(ctx) }()
	for {
		select {
		case e := <-client.Events:
			if e.Type == socketmode.EventTypeHello {
				if code, text := call(t, "GET", url+"/control/messages", ""); code != http.StatusNotFound || !strings.Contains(text, "--control") {
					t.Errorf("HTTP %d: %s", code, text)
				}
				return
			}
		case <-ctx.Done():
			t.Fatal("no hello")
		}
	}
}

// TestFakepagerAcknowledges: an event opens an incident, and a person's
// acknowledgement is posted, signed.
func TestFakepagerAcknowledges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"pd.key": "key\n", "hook.key": "s3cret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signatures := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		signatures <- req.Header.Get("X-PagerDuty-Signature")
	}))
	t.Cleanup(hook.Close)
	url := standIn(t, "fakepager", "--control", "--routing-key-file", filepath.Join(dir, "pd.key"),
		"--webhook-url", hook.URL, "--webhook-secret-file", filepath.Join(dir, "hook.key"))
	event := `{"routing_key":"key","event_action":"trigger","dedup_key":"k","payload":{"summary":"s","source":"x","severity":"critical"}}`
	if code, text := call(t, "POST", url+"/v2/enqueue", event); code != http.StatusAccepted {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	if code, text := call(t, "POST", url+"/v2/enqueue", strings.Replace(event, "key", "other", 1)); code != http.StatusBadRequest {
		t.Errorf("another routing key: HTTP %d: %s", code, text)
	}
	if code, text := call(t, "POST", url+"/control/ack", `{"key":"k","name":"Ann"}`); code != http.StatusOK || !strings.Contains(text, `"status":200`) {
		t.Errorf("HTTP %d: %s", code, text)
	}
	if got := <-signatures; !strings.HasPrefix(got, "v1=") {
		t.Errorf("signature %q", got)
	}
}

// TestFakepagerRefuses: its port is closed for a while, and open again after it
// with what it held.
func TestFakepagerRefuses(t *testing.T) {
	url := standIn(t, "fakepager", "--control")
	if code, text := call(t, "PUT", url+"/control/refuse", ""); code != http.StatusBadRequest {
		t.Errorf("for ever: HTTP %d: %s", code, text)
	}
	if code, text := call(t, "PUT", url+"/control/refuse?for=300ms", ""); code != http.StatusNoContent {
		t.Fatalf("HTTP %d: %s", code, text)
	}
	ctx := within(t)
	refused := false
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/pages", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		switch {
		case ctx.Err() != nil:
			t.Fatal("it never opened again")
		case err != nil && strings.Contains(err.Error(), "refused"):
			refused = true
		case err == nil && refused:
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestStandInsNeedTheirSecrets: an absent or empty file ends it at once.
func TestStandInsNeedTheirSecrets(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"fakeslack", "--signing-secret-file", empty}, {"fakeslack", "--bot-token-file", empty + "x"},
		{"fakeslack", "--app-token-file", empty}, {"fakepager", "--routing-key-file", empty},
		{"fakepager", "--webhook-secret-file", empty + "x"}, {"fakeslack", "--redeliver", "soon"}, {"fakeslack", "--listen", "0.0.0.0:0"},
	} {
		cmd := rootCommand(strings.NewReader(""), io.Discard, io.Discard)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), args[1]) {
			t.Errorf("%v: %v, want a word about %s", args, err, args[1])
		}
	}
}

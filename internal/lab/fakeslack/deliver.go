package fakeslack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Request is a click as it is posted.
type Request struct {
	Header http.Header
	Body   []byte
}

// Signature is Slack's over a body, with its prefix.
func Signature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// Sign makes the request that carries a payload. The zero time is now.
func (s *Slack) Sign(payload []byte, at time.Time) Request {
	if at.IsZero() {
		at = s.o.Now()
	}
	body := []byte("payload=" + url.QueryEscape(string(payload)))
	timestamp := strconv.FormatInt(at.Unix(), 10)
	h := http.Header{}
	h.Set("Content-Type", "application/x-www-form-urlencoded")
	h.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	h.Set("X-Slack-Request-Timestamp", timestamp)
	h.Set("X-Slack-Signature", Signature(s.o.SigningSecret, timestamp, body))
	return Request{Header: h, Body: body}
}

// Deliver posts a request, also one that was sent before, and says what the
// person sees: whatever is not a 200 within Options.Patience is a warning.
func (s *Slack) Deliver(ctx context.Context, r Request) (Outcome, error) {
	s.mu.Lock()
	to, patience := s.o.Interactivity, s.o.Patience
	s.mu.Unlock()
	if to == "" {
		return Outcome{}, errors.New("this Slack has no interactivity URL: set Options.Interactivity, or click over a socket")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(r.Body))
	if err != nil {
		return Outcome{}, fmt.Errorf("the interactivity URL: %w", err)
	}
	req.Header = r.Header.Clone()
	// A connection of its own: an answer lost on a kept one would be asked for again.
	req.Close = true
	o := Outcome{Shown: ShownWarning, Via: ViaHTTP, Sent: r}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	o.Took = Duration(time.Since(began))
	if err != nil {
		o.Error = err.Error()
		return o, nil
	}
	defer func() { _ = resp.Body.Close() }()
	// Slack waits for the whole answer.
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)); err != nil {
		o.Error = err.Error()
		return o, nil
	}
	o.Status = resp.StatusCode
	if o.Status == http.StatusOK {
		o.Shown = ShownOK
	}
	return o, nil
}

// hook is one response URL.
type hook struct {
	press Press
	ts    string
	from  time.Time
	uses  int
}

// A response URL is good for that often and that long.
const (
	hookUses = 5
	hookFor  = 30 * time.Minute
)

// responseURL is "" until this Slack knows its own URL. The caller holds the lock.
func (s *Slack) responseURL(p Press, ts string) string {
	if s.base == "" {
		return ""
	}
	id := s.id("r")
	s.hooks[id] = &hook{press: p, ts: ts, from: s.o.Now()}
	return s.base + "/actions/" + id
}

// response takes what an app says to a response URL.
func (s *Slack) response(w http.ResponseWriter, req *http.Request) {
	var said struct {
		Text         string `json:"text"`
		Blocks       any    `json:"blocks"`
		ResponseType string `json:"response_type"`
		Replace      bool   `json:"replace_original"`
		Delete       bool   `json:"delete_original"`
		Thread       string `json:"thread_ts"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	if err != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	values := url.Values{"text": {said.Text}, "thread_ts": {said.Thread}}
	if said.Blocks != nil {
		blocks, _ := json.Marshal(said.Blocks) // It was JSON.
		values.Set("blocks", string(blocks))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[req.PathValue("id")]
	switch {
	case h == nil, h.uses >= hookUses, s.o.Now().Sub(h.from) > hookFor:
		reply(w, http.StatusNotFound, map[string]any{"ok": false, "error": "used_url"})
		return
	}
	h.uses++
	values.Set("channel", h.press.Channel)
	values.Set("ts", h.ts)
	do := (*Slack).postEphemeral
	switch {
	case said.Delete:
		do = (*Slack).remove
	case said.Replace:
		do = (*Slack).update
	case said.ResponseType == "in_channel":
		do = (*Slack).postMessage
	default:
		values.Set("user", h.press.User)
	}
	if _, no := do(s, values); no != nil {
		reply(w, http.StatusOK, s.refused(no, false))
		return
	}
	_, _ = io.WriteString(w, "ok") // The app may have gone.
}

// Package pagerduty delivers pages to PagerDuty's Events API, version 2. It takes
// a page and gives an event that opens or closes one incident, by a key that is
// the page's.
package pagerduty

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// defaultTimeout bounds one request.
const defaultTimeout = 8 * time.Second

// Options are one receiver of setpoint.yaml.
type Options struct {
	Name string
	URL  string
	// Key reads the routing key each time it is used, so that a rotated one needs
	// no restart.
	Key func() (string, error)
	// Installation keeps the incidents of two installations that page through one
	// service of PagerDuty apart; "" does not.
	Installation string
	// Timeout of one request; zero is 8 s.
	Timeout time.Duration
	// ExternalURL is where the agent's pages are; empty links nowhere.
	ExternalURL string
}

// Receiver is one service of PagerDuty. It is safe for concurrent use.
type Receiver struct {
	o      Options
	client *http.Client
}

var _ escalate.Receiver = (*Receiver)(nil)

// New returns a receiver.
func New(o Options) (*Receiver, error) {
	u, err := url.Parse(o.URL)
	switch {
	case o.Key == nil:
		return nil, fmt.Errorf("receiver %q: pagerduty: no routing key (Options.Key)", o.Name)
	case err != nil:
		return nil, fmt.Errorf("receiver %q: pagerduty: the url is malformed", o.Name)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("receiver %q: pagerduty: want a url with http or https and a host", o.Name)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: o.Timeout, ForceAttemptHTTP2: true,
		// A page an hour keeps no connection open.
		DisableKeepAlives: true,
	}
	return &Receiver{o: o, client: &http.Client{
		Transport: transport,
		// A routing key goes where setpoint.yaml says, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name returns the receiver's name.
func (r *Receiver) Name() string { return r.o.Name }

// Send triggers the page's incident, or resolves it once the page has ended. An
// event with the same key is the same incident, so sending twice changes nothing.
// The key is returned, and the one that was returned before is used: what was
// opened under it is also what has to be closed.
//
// A heartbeat is triggered with severity info and resolved at once, under a key of
// its own: it takes the same way with the same credentials, and nobody is woken
// where the service's urgency follows the severity.
func (r *Receiver) Send(ctx context.Context, p escalate.Page, ref string) (newRef string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	key := ref
	if key == "" {
		key = DedupKey(r.o.Installation, p.ID)
	}
	routing, err := r.o.Key()
	if err != nil {
		return "", r.failed(p, err, routing)
	}
	actions := []string{actionTrigger}
	switch {
	case !p.EndedAt.IsZero():
		actions = []string{actionResolve}
	case p.Reason == escalate.Heartbeat:
		actions = []string{actionTrigger, actionResolve}
	}
	for _, action := range actions {
		if err := r.post(ctx, r.event(p, action, key, routing)); err != nil {
			return "", r.failed(p, err, routing)
		}
	}
	return key, nil
}

// failed is an error that names the page and the receiver, and shows no key,
// whatever a server repeated.
func (r *Receiver) failed(p escalate.Page, err error, key string) error {
	text := err.Error()
	if key != "" {
		text = strings.ReplaceAll(text, key, "<secret>")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("page %s to pagerduty %s: no answer within %s: %w", p.ID, r.o.Name, r.o.Timeout, context.DeadlineExceeded)
	}
	return fmt.Errorf("page %s to pagerduty %s: %s", p.ID, r.o.Name, text)
}

func (r *Receiver) post(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the url is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "setpoint")
	resp, err := r.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			return u.Err
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body would be the bare connection, which no deadline ends.
		return errors.New("HTTP 101: it switched protocols")
	}
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // What is missing is only words.
	return verdict(resp, answer)
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 4096

// verdict: 202 means that the event is queued, which is all that PagerDuty says.
// Any other answer is an error. A proxy that answers 200 has not queued anything.
func verdict(resp *http.Response, body []byte) error {
	switch resp.StatusCode {
	case http.StatusAccepted:
		return nil
	case http.StatusTooManyRequests:
		return fmt.Errorf("HTTP 429: too many events for this routing key; it wants to be left alone%s", retryAfter(resp.Header))
	case http.StatusBadRequest:
		return fmt.Errorf("HTTP 400: it refused the event: %s", refusal(body))
	}
	if resp.StatusCode >= 300 && resp.StatusCode <= 399 {
		return fmt.Errorf("HTTP %d: it redirects, which is not followed: correct the url of this receiver", resp.StatusCode)
	}
	return fmt.Errorf("HTTP %d, want 202: %s", resp.StatusCode, refusal(body))
}

// retryAfter is how long it wants to be left alone, in words. What comes
// when is the outbox's concern.
func retryAfter(h http.Header) string {
	seconds, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || seconds < 0 || seconds > 86400 {
		return " for a while"
	}
	return " for " + (time.Duration(seconds) * time.Second).String()
}

// refusal is what PagerDuty says is wrong with the event, as it may be shown.
func refusal(body []byte) string {
	var said struct {
		Message string   `json:"message"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(body, &said) != nil || said.Message == "" && len(said.Errors) == 0 {
		return execute.CleanText(string(body), 200)
	}
	return execute.CleanText(strings.Trim(said.Message+": "+strings.Join(said.Errors, ", "), ": "), 200)
}

package slack

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Path is the only one that is answered.
const Path = "/slack/interactivity"

// maxBody bounds a request. A click is a few KiB.
const maxBody = 1 << 20

// The bounds on one request: a slow or endless client costs one connection for
// that long.
const (
	headerFor = 5 * time.Second
	readFor   = 10 * time.Second
	writeFor  = 10 * time.Second
	idleFor   = time.Minute
	maxHeader = 16 << 10
)

// Handler takes clicks as Slack posts them.
func (c *Clicks) Handler(secret string) (http.Handler, error) {
	if secret == "" {
		return nil, errors.New("slack: the signing secret is empty, so that anybody could approve; write that of the app (Basic Information, App Credentials) into slack.signingSecretFile")
	}
	return &receiver{clicks: c, secret: secret, loud: rate.Sometimes{Interval: time.Second}}, nil
}

type receiver struct {
	clicks *Clicks
	secret string
	// loud lets a flood of forged requests fill no log; the counter has them all.
	loud rate.Sometimes
}

// ServeHTTP answers with a status and an empty body: a forger learns nothing, and
// Slack would show other words to the person.
func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(rc.answer(w, r))
}

func (rc *receiver) answer(w http.ResponseWriter, r *http.Request) int {
	switch {
	case r.URL.Path != Path:
		return http.StatusNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	case !isForm(r.Header):
		return http.StatusUnsupportedMediaType
	}
	// The signature is over these bytes, whatever a parser would make of them.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusBadRequest
	}
	if result, ok := verify(r.Header, body, rc.secret); !ok {
		rc.unproven(result, r.RemoteAddr)
		return http.StatusUnauthorized
	}
	payload, ok := onePayload(body)
	if !ok {
		rc.clicks.o.OnResult(Malformed)
		rc.clicks.log(click{}, verdict{result: Malformed, err: errors.New("a signed request without one payload")})
		return http.StatusBadRequest
	}
	// Whether Slack sends it again is nothing to us: the first may never have come.
	if rc.clicks.Handle(r.Context(), []byte(payload)) == Failed {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// unproven counts and says that somebody asked who is not known to be Slack.
func (rc *receiver) unproven(result Result, from string) {
	c := rc.clicks
	c.o.OnResult(result)
	if result == Stale {
		c.o.Log.Warn("slack click", "result", string(result), "from", from,
			"err", "signed by Slack at a time more than 5 minutes from this host's clock: a replay, or approvals cannot be verified until the clock is set")
		return
	}
	rc.loud.Do(func() { c.o.Log.Warn("slack click", "result", string(result), "from", from) })
}

func isForm(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// onePayload is the form's one field of that name.
func onePayload(body []byte) (string, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 || form["payload"][0] == "" {
		return "", false
	}
	return form["payload"][0], true
}

// maxConns is how many connections are open at a time. Whoever opens more could
// otherwise use up the files and the memory of the process that also measures and
// pages.
const maxConns = 256

// bounded hangs up on what is too much, at once: Slack shows that to the person,
// who would wait in vain otherwise.
type bounded struct {
	net.Listener
	open atomic.Int64
}

// Accept waits for a connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= maxConns {
			return &counted{Conn: c, closed: sync.OnceFunc(func() { b.open.Add(-1) })}, nil
		}
		b.open.Add(-1)
		_ = c.Close() // It was promised nothing.
	}
}

type counted struct {
	net.Conn
	closed func()
}

// Close makes room for another one.
func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// Serve answers on a listener until ctx ends; a click under way is answered then.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerFor, ReadTimeout: readFor, WriteTimeout: writeFor, IdleTimeout: idleFor,
		// What the library prints quotes bytes of strangers.
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(&bounded{Listener: l}) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		log.Warn("a request on slack.listen was cut at the end", "err", err)
		_ = srv.Close() // Shutdown's error is the one that says what hung.
	}
	return nil
}

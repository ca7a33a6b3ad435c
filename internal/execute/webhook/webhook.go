// Package webhook is the executor of webhook.post: it takes a permit and gives
// the receipt of one signed POST; and it asks the action's statusURL what
// became of a key.
//
// The row webhook.post of the contract is the whole of what it does. Three
// things that HTTP clients like to do are shut off, because each of them sends
// an effect twice or elsewhere: connections are not reused (Go replays some
// requests on a dead reused connection), redirects are not followed, and no
// proxy is taken from the environment. A fourth would send one too late: the
// connection is opened here and not by the client, so that permit and freezes
// are looked at when it stands.
package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Uses is the word in documents for this executor's one verb.
const Uses = "webhook.post"

// Options are what the executor needs beside a permit.
type Options struct {
	// Allow are the URLs that may be reached (executors.webhook.allow). It is
	// checked again at each send: a document may not reach further than
	// setpoint.yaml, whatever was validated when it was loaded.
	Allow []string
	// Secret returns the bytes of a named secret. It may be nil.
	Secret func(name string) ([]byte, bool)
	// Now is the clock for permits, signatures and receipts.
	Now func() time.Time
	// Dial opens connections and gives up when its context ends; nil is the
	// network's own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for private authorities; nil is the system's.
	TLS *tls.Config
	// UserAgent names the sender; empty is "setpoint".
	UserAgent string
}

// Executor sends webhook.post actions. It is safe for concurrent use.
type Executor struct {
	allow     []string
	secret    func(string) ([]byte, bool)
	now       func() time.Time
	userAgent string
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	tls       *tls.Config
	// transport is for reading; each send has one of its own.
	transport *http.Transport
}

var _ execute.Executor = (*Executor)(nil)

// New returns an executor.
func New(o Options) (*Executor, error) {
	if o.Now == nil {
		return nil, errors.New("webhook executor: no clock (Options.Now)")
	}
	if o.Secret == nil {
		o.Secret = func(string) ([]byte, bool) { return nil, false }
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.UserAgent == "" {
		o.UserAgent = "setpoint"
	}
	e := &Executor{
		allow: o.Allow, secret: o.Secret, now: o.Now, userAgent: o.UserAgent,
		dial: o.Dial, tls: o.TLS, transport: newTransport(),
	}
	e.transport.DialContext = o.Dial
	e.transport.TLSClientConfig = o.TLS
	return e, nil
}

// newTransport is a transport without a way to connect.
func newTransport() *http.Transport {
	// HTTP/2 would share a connection and resend refused streams.
	only1 := new(http.Protocols)
	only1.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // HTTP_PROXY must not carry an effect elsewhere
		Protocols:              only1,
		DisableKeepAlives:      true,
		DisableCompression:     true, // so that the limit is on what was sent
		MaxResponseHeaderBytes: execute.MaxAnswer,
	}
}

// Execute sends the permitted action once: it connects, looks at the permit
// and at ready, and writes. The deadline of all of it is the action's timeout,
// counted from here.
func (e *Executor) Execute(ctx context.Context, p gate.Permit, ready func() error) (execute.Receipt, error) {
	refused := func(err error) (execute.Receipt, error) {
		return execute.Refused(e.now(), fmt.Errorf("%s to %s: %w", Uses, p.Key(), err))
	}
	body, err := e.check(ctx, p)
	if err != nil {
		return refused(err)
	}
	a := p.Action()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	req, err := e.post(a, p.Key(), body)
	if err != nil {
		return refused(err)
	}
	conn, err := e.connect(ctx, p, req.URL)
	if errors.Is(err, execute.ErrNoPermit) {
		return refused(err)
	}
	if err != nil {
		return e.unsent(err), nil
	}
	defer func() { _ = conn.Close() }()
	if err := execute.LastLook(p, e.now, ready); err != nil {
		return refused(err)
	}
	return e.send(req.WithContext(ctx), conn, a.MaxLateness), nil
}

// check refuses whatever must not be sent, and returns the bytes to send.
func (e *Executor) check(ctx context.Context, p gate.Permit) ([]byte, error) {
	a := p.Action()
	if !p.Valid(e.now()) {
		return nil, fmt.Errorf("%w: it was never minted, or expired", execute.ErrNoPermit)
	}
	if a.Uses != Uses {
		return nil, fmt.Errorf("%w: it is for %q", execute.ErrNoPermit, a.Uses)
	}
	// Computed, not trusted: what leaves has the digest that was gated, although
	// the permit hands out copies only.
	digest, err := gate.Digest(p.Service(), p.Key(), a, p.Parameters())
	if err != nil || digest != p.Digest() {
		return nil, fmt.Errorf("%w: the action no longer has the digest that was gated", execute.ErrNoPermit)
	}
	if err := execute.CheckURL(a.Target.URL, e.allow); err != nil {
		return nil, err
	}
	if a.Timeout <= 0 {
		return nil, fmt.Errorf("action %q has no timeout, so its horizon is not known", a.Name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(execute.NewEnvelope(p))
}

func (e *Executor) post(a spec.Action, key gate.Key, body []byte) (*http.Request, error) {
	u, err := url.Parse(a.Target.URL)
	if err != nil {
		return nil, err
	}
	h := http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {"application/json"},
		"User-Agent":      {e.userAgent},
		execute.HeaderKey: {string(key)},
	}
	if a.Target.Secret != "" {
		secret, ok := e.secret(a.Target.Secret)
		if !ok || len(secret) == 0 {
			return nil, fmt.Errorf("secret %q of action %q is not in setpoint.yaml's secrets, or empty", a.Target.Secret, a.Name)
		}
		h.Set(execute.HeaderSignature, execute.Sign(secret, e.now(), body))
	}
	// Without GetBody the client has no second copy of the bytes to replay.
	return &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: h,
		Body: newBody(body), ContentLength: int64(len(body)),
	}, nil
}

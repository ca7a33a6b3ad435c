// Package webhook delivers pages to anything that takes Alertmanager's webhook
// JSON, version 4. It takes a page and gives one POST of a group with one
// alert.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// defaultTimeout bounds one request.
const defaultTimeout = 10 * time.Second

// Options are one receiver of setpoint.yaml.
type Options struct {
	Name string
	URL  string
	HTTP config.HTTPClientConfig
	// Timeout of one request; zero is 10 s.
	Timeout time.Duration
	Now     func() time.Time
	// Secret signs the body like an effect (X-Setpoint-Signature); empty does
	// not.
	Secret []byte
	// ExternalURL is where the agent's pages are; empty links nowhere.
	ExternalURL string
}

// Receiver is one URL. It is safe for concurrent use.
type Receiver struct {
	o      Options
	client *http.Client
}

var _ escalate.Receiver = (*Receiver)(nil)

// New returns a receiver.
func New(o Options) (*Receiver, error) {
	u, err := url.Parse(o.URL)
	switch {
	case o.Now == nil:
		return nil, fmt.Errorf("receiver %q: webhook: no clock (Options.Now)", o.Name)
	case err != nil:
		return nil, fmt.Errorf("receiver %q: webhook: the url is malformed", o.Name)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("receiver %q: webhook: want a url with http or https and a host", o.Name)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	c, err := config.NewClientFromConfig(o.HTTP, "setpoint-webhook", config.WithUserAgent("setpoint"))
	if err != nil {
		return nil, fmt.Errorf("receiver %q: webhook: http: %w", o.Name, err)
	}
	return &Receiver{o: o, client: c}, nil
}

// Name returns the receiver's name.
func (r *Receiver) Name() string { return r.o.Name }

// Send posts the page. The header Idempotency-Key is the same for the same
// content, so a receiver may drop what comes twice; for pages that is wanted,
// unlike for effects. Any answer but 200–299 is an error.
func (r *Receiver) Send(ctx context.Context, p escalate.Page, _ string) (ref string, err error) {
	body, err := json.Marshal(escalate.NewMessage(p, r.o.Name, r.o.ExternalURL))
	if err != nil {
		return "", fmt.Errorf("page %s to webhook %s: %w", p.ID, r.o.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.URL, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("page %s to webhook %s: the url is malformed", p.ID, r.o.Name)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", p.ID+"/"+p.ContentDigest())
	if len(r.o.Secret) > 0 {
		req.Header.Set(execute.HeaderSignature, execute.Sign(r.o.Secret, r.o.Now(), body))
	}
	if err := r.post(req); err != nil {
		return "", fmt.Errorf("page %s to webhook %s: %w", p.ID, r.o.Name, err)
	}
	return "", nil
}

func (r *Receiver) post(req *http.Request) error {
	resp, err := r.client.Do(req)
	if err != nil {
		// The URL of a webhook is often a secret itself.
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
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("HTTP %d: %s", resp.StatusCode, execute.CleanText(string(body), 200))
	}
	return nil
}

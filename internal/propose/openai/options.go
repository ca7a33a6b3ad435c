package openai

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Key is an API key. It prints as <secret>, however it is printed.
type Key string

const secretWord = "<secret>"

// String returns <secret>.
func (Key) String() string { return secretWord }

// GoString returns <secret>.
func (Key) GoString() string { return secretWord }

// MarshalText returns <secret>.
func (Key) MarshalText() ([]byte, error) { return []byte(secretWord), nil }

// LogValue returns <secret>.
func (Key) LogValue() slog.Value { return slog.StringValue(secretWord) }

// Format writes <secret> for every verb.
func (Key) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(secretWord)) }

// Reply is how a model is made to answer in the form of a proposal.
type Reply string

// The reply modes. None of them is trusted: what comes is parsed alike.
const (
	// ReplySchema asks for structured output by JSON Schema.
	ReplySchema Reply = "json_schema"
	// ReplyTool asks for one call of a function with that schema.
	ReplyTool Reply = "tool"
	// ReplyObject asks for JSON, and the prompt says which.
	ReplyObject Reply = "json_object"
	// ReplyAuto is the first of them that the endpoint was found to honour, and
	// json_schema before that is known (Learn).
	ReplyAuto Reply = "auto"
)

// Endpoint is one OpenAI-compatible server with one model.
type Endpoint struct {
	Name, BaseURL, Model string
	// Key is sent as a bearer token; empty: none is sent.
	Key Key
	// Timeout is for a question and its repair turn (20s).
	Timeout time.Duration
	// Reply takes the place of the options' one for this endpoint; "" is that.
	Reply Reply
}

// Options configure a Client.
type Options struct {
	// Endpoints are asked in order.
	Endpoints []Endpoint
	Reply     Reply
	Prompts   *propose.Prompts
	// PromptTokens bounds the estimated size of a request; 0: no bound.
	PromptTokens int
	// CompletionTokens bounds the reply (1024).
	CompletionTokens int
	// Timeout is the one deadline over all endpoints (the sum of theirs, and
	// never more than two minutes).
	Timeout time.Duration
	// MaxBody bounds the body of a response in bytes, decompressed (1 MiB).
	MaxBody int64
	// Transport sends the requests, e.g. with tracing around it. The default
	// opens a fresh connection for each, through no proxy.
	Transport http.RoundTripper
	// Tracer makes a span for each request; nil: that of the span in the context.
	Tracer trace.Tracer
	// CaptureContent puts what was asked and answered into the spans.
	CaptureContent bool
	// Now is the clock (time.Now), and Random gives 0 to 1 for the jitter of
	// pauses.
	Now    func() time.Time
	Random func() float64
}

// maxTimeout is how long an asking may take at most: who waits for it gives up
// then, whatever the endpoints' own limits are.
const maxTimeout = 2 * time.Minute

func (o Options) withDefaults() Options {
	endpoints := make([]Endpoint, len(o.Endpoints))
	copy(endpoints, o.Endpoints)
	o.Endpoints = endpoints
	var sum time.Duration
	for i := range o.Endpoints {
		if o.Endpoints[i].Timeout == 0 {
			o.Endpoints[i].Timeout = 20 * time.Second
		}
		sum += o.Endpoints[i].Timeout
		o.Endpoints[i].Reply = cmp.Or(o.Endpoints[i].Reply, o.Reply, ReplySchema)
	}
	if o.Timeout == 0 {
		o.Timeout = sum
	}
	o.Timeout = min(o.Timeout, maxTimeout)
	if o.CompletionTokens == 0 {
		o.CompletionTokens = 1024
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.Transport == nil {
		o.Transport = transport(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// maxHeader bounds the headers of a response, in bytes.
const maxHeader = 64 << 10

// transport opens a fresh connection for each request, through no proxy: what
// the environment names would see the key. It undoes no compression, because
// none was asked for, and a small body could become a large one.
func transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
}

func (o Options) validate() error {
	switch {
	case o.Prompts == nil:
		return errors.New("no prompts are loaded")
	case len(o.Endpoints) == 0:
		return errors.New("no endpoint is configured: name one under proposer.endpoints")
	case o.PromptTokens < 0 || o.CompletionTokens < 0 || o.MaxBody < 0 || o.Timeout < 0:
		return errors.New("a limit is negative")
	}
	seen := map[string]bool{}
	for i, e := range o.Endpoints {
		if err := e.validate(); err != nil {
			return fmt.Errorf("endpoint %d (%s): %w", i+1, e.Name, err)
		}
		if seen[e.Name] {
			return fmt.Errorf("two endpoints are named %s", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

func (e Endpoint) validate() error {
	switch e.Reply {
	case ReplySchema, ReplyTool, ReplyObject, ReplyAuto:
	default:
		return fmt.Errorf("unknown reply %q, want json_schema, tool, json_object or auto", e.Reply)
	}
	switch {
	case e.Name == "" || e.Model == "":
		return errors.New("needs a name and a model")
	case strings.ContainsFunc(string(e.Key), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return errors.New("the API key holds a space or a control character")
	case e.Timeout < 0:
		return errors.New("timeout is negative")
	}
	return checkBaseURL(e.BaseURL)
}

// checkBaseURL never quotes the URL: it may hold a password.
func checkBaseURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("baseURL must be like https://host/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("baseURL must have no user, query or fragment: a key belongs in apiKeyFile")
	}
	return nil
}

package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

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
)

// Endpoint is one OpenAI-compatible server with one model.
type Endpoint struct {
	Name, BaseURL, Model string
	// Key is sent as a bearer token; empty: none is sent.
	Key     Key
	Timeout time.Duration
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
	// Timeout is the one deadline over all endpoints (the sum of theirs).
	Timeout time.Duration
	// MaxBody bounds the body of a response in bytes, decompressed (1 MiB).
	MaxBody int64
	// Transport sends the requests, e.g. with tracing around it. The default
	// opens a fresh connection for each, through no proxy.
	Transport http.RoundTripper
	// Now is the clock (time.Now).
	Now func() time.Time
}

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
	}
	if o.Timeout == 0 {
		o.Timeout = sum
	}
	if o.Reply == "" {
		o.Reply = ReplySchema
	}
	if o.CompletionTokens == 0 {
		o.CompletionTokens = 1024
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	switch o.Reply {
	case ReplySchema, ReplyTool, ReplyObject:
	default:
		return fmt.Errorf("unknown reply %q, want json_schema, tool or json_object", o.Reply)
	}
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

// minScrubbed is the length from which a key is looked for in replies. Shorter
// ones are placeholders for servers without keys ("EMPTY", "none"), and cutting
// those out would damage honest answers.
const minScrubbed = 8

func (c *Client) scrubText(s string) string {
	for _, e := range c.opts.Endpoints {
		if k := string(e.Key); len(k) >= minScrubbed {
			s = strings.ReplaceAll(s, k, secretWord)
		}
	}
	return s
}

// scrub cuts every configured key out of bytes that came from a provider:
// some echo the request's headers in their errors.
func (c *Client) scrub(b []byte) []byte { return []byte(c.scrubText(string(b))) }

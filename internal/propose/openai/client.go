// Package openai asks a language model behind an OpenAI-compatible endpoint.
// It takes a Request and gives a Proposal with the Usage it cost: each
// endpoint is asked once at most, in order, under one deadline. Whatever comes
// back is bytes from a stranger, and propose.Parse judges it.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Kind is the proposer's kind, as the gate's input and the ledger name it.
const Kind = "openai"

// Client asks the endpoints of one configuration. It is safe for concurrent
// use and keeps no state between calls.
type Client struct {
	opts Options
}

// New checks the options. It contacts nothing.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("proposer openai: %w", err)
	}
	return &Client{opts: o}, nil
}

// Deadline is how long Propose takes at most; an asking without a proposal
// after it has been given up.
func (c *Client) Deadline() time.Duration { return c.opts.Timeout }

// Propose asks the endpoints in order until one gives a valid proposal. A
// refusal, or an answer that the provider withheld, is an answer: no other
// endpoint is asked until one complies. What is no proposal is of kind
// malformed, with a code of propose.Fault… first.
func (c *Client) Propose(ctx context.Context, r propose.Request) (propose.Proposal, Usage) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	u := Usage{PromptVersion: c.opts.Prompts.Version(), PromptDigest: c.opts.Prompts.Digest()}
	q, err := c.question(r)
	if err != nil {
		return propose.Malformed(propose.Proposer{Kind: Kind}, propose.FaultPrompt, err.Error()), u
	}
	u.TriedOmitted, u.EstimatedPromptTokens = q.prompt.TriedOmitted, q.estimate
	var p propose.Proposal
	for _, e := range c.opts.Endpoints {
		var a Attempt
		p, a = c.ask(ctx, e, q, r.Catalogue)
		u.Attempts = append(u.Attempts, a)
		if final(a.Result) || ctx.Err() != nil {
			break
		}
	}
	return p, u
}

// final reports whether the result ends the asking.
func final(result string) bool {
	switch result {
	case ResultOK, propose.FaultRefusal, propose.FaultFiltered, propose.FaultCanceled:
		return true
	}
	return false
}

// ask puts the question to one endpoint, once.
func (c *Client) ask(ctx context.Context, e Endpoint, q question, cat propose.Catalogue) (propose.Proposal, Attempt) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	x := &exchange{base: c.opts.Transport, limit: c.opts.MaxBody, now: c.opts.Now, scrub: c.scrub}
	start := c.opts.Now()
	resp, err := c.api(e, x).CreateChatCompletion(ctx, q.request(e.Model))
	a := Attempt{
		Endpoint: e.Name, Model: e.Model, Status: x.status, RetryAfter: x.retryAfter,
		Request: x.request, Reply: x.reply, Duration: c.opts.Now().Sub(start),
	}
	var p propose.Proposal
	var f *fault
	if err != nil {
		f = faultOf(ctx, x, err)
	} else {
		a.fill(resp)
		p, f = readAnswer(resp, c.opts.Reply, cat)
	}
	who := propose.Proposer{Kind: Kind, Endpoint: e.Name, Model: e.Model}
	if f != nil {
		a.Result = f.code
		text := propose.CleanText(c.scrubText(f.text), maxFaultText)
		return propose.Malformed(who, f.code, fmt.Sprintf("endpoint %s: %s", e.Name, text)), a
	}
	a.Result = ResultOK
	p.Proposer = who
	p.Rationale = propose.CleanText(c.scrubText(p.Rationale), propose.MaxRationale)
	return p, a
}

// maxFaultText bounds what a stranger's words add to a fault, in characters.
const maxFaultText = 300

// fault is a stable code with words.
type fault struct{ code, text string }

// Error returns code and words.
func (f *fault) Error() string { return f.code + ": " + f.text }

func faultf(code, format string, args ...any) *fault {
	return &fault{code: code, text: fmt.Sprintf(format, args...)}
}

// faultOf turns an error of the client library into a fault of ours. Its own
// text holds the URL and provider's words, so only the innermost is shown.
func faultOf(ctx context.Context, x *exchange, err error) *fault {
	var f *fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(ctx.Err(), context.Canceled):
		return faultf(propose.FaultCanceled, "given up")
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return faultf(propose.FaultTimeout, "no complete answer within the deadline")
	case x.status != 0:
		return faultf(propose.FaultProvider, "the answer is no chat completion: %v", err)
	case !x.sent:
		return faultf(propose.FaultPrompt, "the request cannot be put to this model: %v", err)
	default:
		return faultf(propose.FaultUnreachable, "%v", innermost(err))
	}
}

// innermost leaves out the layers that repeat the URL.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// noRedirect is a second lock: exchange refuses a redirect before it.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

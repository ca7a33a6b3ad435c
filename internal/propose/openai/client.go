// Package openai asks a language model behind an OpenAI-compatible endpoint.
// It takes a Request and gives a Proposal with the Usage it cost: the endpoints
// in order, each with one question and one repair turn at most, under one
// deadline. Whatever comes back is bytes from a stranger, and propose.Parse
// judges it.
package openai

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Kind is the proposer's kind, as the gate's input and the ledger name it.
const Kind = "openai"

// Client asks the endpoints of one configuration. It is safe for concurrent
// use. What it remembers, in memory only, is how each endpoint answered lately.
type Client struct {
	opts      Options
	endpoints []*endpoint
}

// endpoint is one of them with what is known of it.
type endpoint struct {
	Endpoint // without its key
	// key is a function, because printing a structure shows its hidden fields
	// without asking how they want to be shown.
	key  func() string
	rest rest
	// learned is the mode that it honours; nil while that is not known.
	learned atomic.Pointer[Reply]
}

// New checks the options. It contacts nothing.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("proposer openai: %w", err)
	}
	c := &Client{opts: o}
	for _, e := range o.Endpoints {
		key := string(e.Key)
		e.Key = ""
		c.endpoints = append(c.endpoints, &endpoint{Endpoint: e, key: func() string { return key }, rest: rest{random: o.Random}})
	}
	c.opts.Endpoints = nil
	return c, nil
}

// Propose asks the endpoints in order until one gives a valid proposal, as the
// table of faults says. What is no proposal is of kind malformed, with a code
// of propose.Fault… first: that of the last endpoint whose model answered, or
// else of the last one. Where every endpoint is left alone after failures,
// nothing is sent and it is FaultResting.
func (c *Client) Propose(ctx context.Context, r propose.Request) (propose.Proposal, Usage) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	u := Usage{PromptVersion: c.opts.Prompts.Version(), PromptDigest: c.opts.Prompts.Digest()}
	a := &asking{client: c, request: r, usage: &u}
	for _, e := range c.endpoints {
		over := a.endpoint(ctx, e)
		if over || ctx.Err() != nil {
			break
		}
	}
	return a.proposal(), u
}

// asking is one call of Propose.
type asking struct {
	client  *Client
	request propose.Request
	usage   *Usage

	valid    *propose.Proposal
	fault    *fault
	who      propose.Proposer
	answered bool     // fault is of a model that answered
	others   []string // what else was asked, and what came of it
	resting  []string
	first    time.Time // when the first resting endpoint may be asked
}

// endpoint asks one, and reports whether the asking is over.
func (a *asking) endpoint(ctx context.Context, e *endpoint) (over bool) {
	c := a.client
	who := propose.Proposer{Kind: Kind, Endpoint: e.Name, Model: e.Model}
	q, err := c.question(a.request, e.reply())
	if err != nil {
		a.note(who, faultf(propose.FaultPrompt, "%s", c.clean(err.Error(), maxFaultText)))
		return false
	}
	a.usage.TriedOmitted, a.usage.EstimatedPromptTokens = q.prompt.TriedOmitted, q.prompt.Tokens
	t, from, ok := e.rest.enter(c.opts.Now())
	if !ok {
		a.rests(e, from)
		return false
	}
	p, s, f := a.ask(ctx, e, q)
	e.rest.leave(t, s, c.opts.Now())
	if f == nil {
		p.Proposer = who
		a.valid = &p
		return true
	}
	a.note(who, f)
	return !rules[f.code].next
}

// ask puts the question, and once more with what was wrong. The endpoint's
// timeout is for both. It gives the last answer, and what is wrong with all.
func (a *asking) ask(ctx context.Context, e *endpoint, q question) (p propose.Proposal, s said, f *fault) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	t := q.turn(e.Model)
	t.judge = func(resp api.ChatCompletionResponse) (f *fault) {
		p, f = a.client.read(resp, t.mode, a.request.Catalogue)
		return f
	}
	s = a.send(ctx, e, t)
	if s.fault == nil || !rules[s.fault.code].repair || ctx.Err() != nil || e.rest.left(a.client.opts.Now()) {
		return p, s, s.fault
	}
	again, err := q.again(t, s, a.client.opts.Prompts)
	if err != nil {
		return p, s, s.fault
	}
	second := a.send(ctx, e, again)
	if second.fault != nil && rules[second.fault.code].health == ill {
		// The model has answered, and badly: that it could not be asked again
		// does not make it one that never spoke.
		f = faultf(s.fault.code, "%s; then %s", s.fault.text, second.fault)
		if second.fault.code == propose.FaultTimeout {
			second = s // It had only what was left of the time, and that is no failure.
		}
		return p, second, f
	}
	return p, second, second.fault
}

func (a *asking) send(ctx context.Context, e *endpoint, t turn) said {
	s := a.client.send(ctx, e, t)
	if s.sent {
		a.usage.Exchanges = append(a.usage.Exchanges, s.exchange)
	}
	return s
}

// note keeps a fault, unless a model has answered and this one did not.
func (a *asking) note(who propose.Proposer, f *fault) {
	answered := rules[f.code].health == well || f.code == propose.FaultCanceled
	if a.fault != nil && !answered && a.answered {
		a.others = append(a.others, who.Endpoint+": "+f.code)
		return
	}
	if a.fault != nil {
		a.others = append(a.others, a.who.Endpoint+": "+a.fault.code)
	}
	a.fault, a.who, a.answered = f, who, answered
}

func (a *asking) rests(e *endpoint, from time.Time) {
	if len(a.resting) == 0 || from.Before(a.first) {
		a.first = from
	}
	a.resting = append(a.resting, e.Name+" after "+e.rest.words())
}

func (a *asking) proposal() propose.Proposal {
	switch {
	case a.valid != nil:
		return *a.valid
	case a.fault != nil:
		return a.refused()
	}
	return propose.Malformed(propose.Proposer{Kind: Kind}, propose.FaultResting, fmt.Sprintf("every endpoint is left alone, the first until %s: %s",
		a.first.UTC().Format("15:04:05Z"), strings.Join(a.resting, ", ")))
}

// refused is what stands for the fault that counts, and names the others by
// their codes. What a model says in the place of an answer are its own words, and
// stand where those do.
func (a *asking) refused() propose.Proposal {
	text, own := a.fault.text, ""
	if a.fault.code == propose.FaultRefusal {
		text, own = "the model declined", text
	}
	also := ""
	if len(a.others) > 0 || len(a.resting) > 0 {
		also = "; also asked, or left alone: " + strings.Join(append(a.others, a.resting...), ", ")
	}
	p := propose.Malformed(a.who, a.fault.code, fmt.Sprintf("endpoint %s: %s%s", a.who.Endpoint, text, also))
	p.Rationale = propose.CleanText(own, propose.MaxRationale)
	return p
}

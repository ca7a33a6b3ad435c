package openai

import (
	"context"
	"fmt"
	"net/http"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// Probed is what one endpoint was found to do. It is asked with small
// questions of our own, about no service.
type Probed struct {
	Endpoint, Model string
	// Fault says why there is no answer at all, with the code of propose.Fault…
	// first; "" when it answers.
	Fault string
	// Status is that of HTTP, 0 when no response was read: of the first answer,
	// or of the last fault.
	Status int
	// Modes are the ways to ask for a form, each with what came of it. They end
	// where an endpoint was found not to answer at all.
	Modes []ModeProbed
	// Best is the mode to use: the first of json_schema, tool, json_object that
	// is honoured; "" when none is.
	Best Reply
	// EstimatedTokens is our count of a prompt of the configured size, and
	// CountedTokens the endpoint's, 0 when it counts nothing. Truncated: the
	// front of that prompt did not reach the model, or far fewer were counted.
	EstimatedTokens, CountedTokens int
	Truncated                      bool
	// PromptDetail says why Truncated, or why that is not known; "" otherwise.
	PromptDetail string
	// InputTokens and OutputTokens are what one proposal costs, by the
	// endpoint's count, and Took how long it takes; Took is 0 when it could not
	// be asked for.
	InputTokens, OutputTokens int
	Took                      time.Duration
	// ProposalMode is how that proposal was asked for: as it is configured, or
	// Best where that is auto; "" when it was not.
	ProposalMode Reply
	// ProposalFault says what was wrong with that proposal, with the code of
	// propose.Fault… first; "" when it was valid.
	ProposalFault string
	// ServedModel is the model that the endpoint says it is.
	ServedModel string
}

// ModeProbed is what came of asking for a form.
type ModeProbed struct {
	Mode Reply
	// Honoured: what came has the form, and holds what the schema demands.
	Honoured bool
	// Detail says what came instead, or what is odd about it; "" otherwise.
	Detail string
}

// probeTokens is the size of the long prompt where none is configured.
const probeTokens = 2500

// Probe asks one endpoint what it honours: five requests at most, each within
// the endpoint's timeout, and all within two minutes. It looks at no rest and
// leaves none. It is an error when no endpoint has that name; everything else
// is in the result.
func (c *Client) Probe(ctx context.Context, name string) (Probed, error) {
	for _, e := range c.endpoints {
		if e.Name == name {
			ctx, cancel := context.WithTimeout(ctx, maxTimeout)
			defer cancel()
			return c.probe(ctx, e), nil
		}
	}
	return Probed{}, fmt.Errorf("proposer openai: no endpoint is named %q", name)
}

func (c *Client) probe(ctx context.Context, e *endpoint) Probed {
	out := Probed{Endpoint: e.Name, Model: e.Model}
	answers := false
	out.Modes, out.Best = c.forms(ctx, e, false, func(s said) {
		switch {
		case s.fault == nil || rules[s.fault.code].health == well:
			// An endpoint that answers in one mode is one that answers.
			answers = true
			out.Fault, out.Status, out.ServedModel = "", s.exchange.Status, c.clean(s.response.Model, maxSpanWord)
		case !answers && out.Fault == "":
			out.Fault, out.Status = s.fault.Error(), s.exchange.Status
		}
	})
	if out.Fault != "" {
		return out
	}
	c.probePrompt(ctx, e, &out)
	c.probeProposal(ctx, e, &out)
	return out
}

// forms asks for each form in the order of preference, up to the first that is
// honoured if that is enough. It ends where the endpoint does not answer for
// a reason that has nothing to do with the form.
func (c *Client) forms(ctx context.Context, e *endpoint, enough bool, heard func(said)) (modes []ModeProbed, best Reply) {
	for _, mode := range []Reply{ReplySchema, ReplyTool, ReplyObject} {
		m := ModeProbed{Mode: mode}
		s := c.put(ctx, e, c.formTurn(e, mode, &m.Detail))
		heard(s)
		if m.Honoured = s.fault == nil; !m.Honoured {
			m.Detail = s.fault.text
		}
		modes = append(modes, m)
		if m.Honoured && best == "" {
			best = mode
		}
		if best != "" && enough || ctx.Err() != nil || s.fault != nil && dead(s.fault) {
			break
		}
	}
	return modes, best
}

// dead reports that asking in another form would change nothing.
func dead(f *fault) bool {
	if rules[f.code].health != ill {
		return false
	}
	switch f.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented, http.StatusInternalServerError:
		return false
	}
	return f.status != http.StatusOK || f.code == propose.FaultTimeout
}

// put sends one question within the endpoint's timeout.
func (c *Client) put(ctx context.Context, e *endpoint, t turn) said {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	return c.send(ctx, e, t)
}

// probePrompt finds out whether a prompt of the configured size arrives whole:
// some servers cut off its front, and say nothing.
func (c *Client) probePrompt(ctx context.Context, e *endpoint, out *Probed) {
	tokens := c.opts.PromptTokens
	if tokens == 0 {
		tokens = probeTokens
	}
	lost := false
	t, estimate := c.canaryTurn(e, fmt.Sprintf("tarn-%04d", int(9999*c.opts.Random())), tokens, &lost)
	s := c.put(ctx, e, t)
	out.EstimatedTokens, out.CountedTokens = estimate, s.exchange.InputTokens
	switch few := out.CountedTokens > 0 && 2*out.CountedTokens < estimate; {
	case s.fault != nil:
		out.PromptDetail = "not known: " + s.fault.Error()
	case few:
		out.Truncated = true
		out.PromptDetail = fmt.Sprintf("%d tokens were counted where about %d were sent", out.CountedTokens, estimate)
	case lost:
		out.Truncated = true
		out.PromptDetail = "the code word at the front of the prompt was not repeated"
	}
}

// probeProposal is one question as an incident would put it: in the configured
// mode, whatever else is honoured, and in the best one where auto chooses.
func (c *Client) probeProposal(ctx context.Context, e *endpoint, out *Probed) {
	mode := e.reply()
	if e.Reply == ReplyAuto && out.Best != "" {
		mode = out.Best
	}
	out.ProposalMode = mode
	q, err := c.question(typical(c.opts.Now()), mode)
	if err != nil {
		out.ProposalFault = faultf(propose.FaultPrompt, "%s", c.clean(err.Error(), maxFaultText)).Error()
		return
	}
	t := q.turn(e.Model)
	t.judge = func(resp api.ChatCompletionResponse) *fault {
		_, f := c.read(resp, mode, typical(c.opts.Now()).Catalogue)
		return f
	}
	s := c.put(ctx, e, t)
	out.InputTokens, out.OutputTokens, out.Took = s.exchange.InputTokens, s.exchange.OutputTokens, s.exchange.Took
	if s.fault != nil {
		out.ProposalFault = s.fault.Error()
	}
}

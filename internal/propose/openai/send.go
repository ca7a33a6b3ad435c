package openai

import (
	"context"
	"net/http"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// turn is one request to one endpoint.
type turn struct {
	mode    Reply
	request api.ChatCompletionRequest
	repair  bool
	// prompt names what was asked with, for traces.
	prompt string
	// judge says what is wrong with an answer.
	judge func(api.ChatCompletionResponse) *fault
}

// said is what came of a turn.
type said struct {
	exchange   propose.Exchange
	response   api.ChatCompletionResponse
	sent       bool
	retryAfter time.Duration
	fault      *fault // nil: a valid answer
}

// send takes one turn. The keys are cut out of all that it gives.
func (c *Client) send(ctx context.Context, e *endpoint, t turn) said {
	ctx, span := c.startSpan(ctx, e, t)
	x := &exchange{base: c.opts.Transport, limit: c.opts.MaxBody, now: c.opts.Now, scrub: c.scrub}
	start := c.opts.Now()
	resp, err := c.api(e, x).CreateChatCompletion(ctx, t.request)
	s := said{response: resp, sent: x.sent, retryAfter: x.retryAfter}
	if err != nil {
		s.fault = faultOf(ctx, x, err)
	} else {
		s.fault = t.judge(resp)
	}
	s.exchange = propose.Exchange{
		Endpoint: e.Name, Model: e.Model, Mode: string(t.mode), Repair: t.repair, Result: ResultOK, Status: x.status,
		Took: c.opts.Now().Sub(start), Request: x.request, Reply: x.reply,
		InputTokens:  counted(resp.Usage.PromptTokens, len(x.request)),
		OutputTokens: counted(resp.Usage.CompletionTokens, max(len(x.reply), t.request.MaxCompletionTokens)),
	}
	if s.fault != nil {
		s.fault.status = x.status
		s.fault.text = c.clean(s.fault.text, maxFaultText)
		s.exchange.Result = s.fault.code
	}
	c.endSpan(span, t, s)
	return s
}

// counted is the endpoint's count of tokens as far as it can be true: none is less
// than a byte. The limits are for all endpoints together, so one that counts
// millions would keep the others from being asked for a day, and one that counts
// without bound would make the sum pass zero.
func counted(n, most int) int { return min(max(0, n), most) }

// maxFaultText bounds what a stranger's words add to a fault, in characters.
const maxFaultText = 300

func (c *Client) api(e *endpoint, x *exchange) *api.Client {
	cfg := api.DefaultConfig(e.key())
	cfg.BaseURL = e.BaseURL
	cfg.HTTPClient = &http.Client{Transport: x, CheckRedirect: noRedirect}
	return api.NewClientWithConfig(cfg)
}

// noRedirect is a second lock: exchange refuses a redirect before it.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

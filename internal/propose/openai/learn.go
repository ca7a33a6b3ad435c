package openai

import (
	"context"
	"time"
)

// learnEvery is how often an endpoint that does not answer is asked again what
// it honours.
const learnEvery = 10 * time.Minute

// reply is the mode to ask in.
func (e *endpoint) reply() Reply {
	if e.Reply != ReplyAuto {
		return e.Reply
	}
	if known := e.learned.Load(); known != nil {
		return *known
	}
	return ReplySchema
}

// Learn finds out which mode each endpoint with reply auto honours, by the
// questions of Probe about the form: from one to three, about no service. It is
// remembered in memory only. An endpoint that does not answer is asked again
// ten minutes later, one that answers and honours none is asked with
// json_schema. It returns when all is known or the context ends, so it belongs
// in the background: until then questions are put with json_schema, and none
// waits.
func (c *Client) Learn(ctx context.Context) {
	for c.learn(ctx) > 0 {
		timer := time.NewTimer(learnEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// learn asks once, and says how many endpoints are still not known.
func (c *Client) learn(ctx context.Context) (unknown int) {
	for _, e := range c.endpoints {
		if e.Reply != ReplyAuto || e.learned.Load() != nil {
			continue
		}
		if !c.learnOne(ctx, e) {
			unknown++
		}
	}
	return unknown
}

func (c *Client) learnOne(ctx context.Context, e *endpoint) (known bool) {
	t, _, ok := e.rest.enter(c.opts.Now())
	if !ok {
		return false
	}
	var last said
	answered := false
	_, best := c.forms(ctx, e, true, func(s said) {
		last = s
		answered = answered || s.fault == nil || rules[s.fault.code].health == well
	})
	e.rest.leave(t, last, c.opts.Now())
	if !answered || ctx.Err() != nil {
		return false
	}
	if best == "" {
		best = ReplySchema
	}
	e.learned.Store(&best)
	return true
}

package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// fault is a stable code with words. status is that of HTTP, 0 without one.
type fault struct {
	code, text string
	status     int
}

// Error returns code and words.
func (f *fault) Error() string { return f.code + ": " + f.text }

func faultf(code, format string, args ...any) *fault {
	return &fault{code: code, text: fmt.Sprintf(format, args...)}
}

// health is what a result says about the endpoint that gave it.
type health int

const (
	// silent says nothing about it.
	silent health = iota
	// well: it answered, however badly.
	well
	// ill: it did not; it is left alone for a while.
	ill
)

// rule is what follows a result.
type rule struct {
	// repair: the same endpoint is asked once more and shown what was wrong.
	repair bool
	// longer: that turn may use a longer completion.
	longer bool
	// next: then the next endpoint is asked. Otherwise the asking is over.
	next bool
	// health is what it means for the endpoint.
	health health
}

// rules is the whole of what follows a result. A model that declined, or whose answer the
// provider withheld, has answered: nobody is asked until one complies. An
// answer without content gives nothing to repair.
var rules = map[string]rule{
	ResultOK:                 {health: well},
	propose.FaultMalformed:   {repair: true, next: true, health: well},
	propose.FaultTruncated:   {repair: true, longer: true, next: true, health: well},
	propose.FaultEmpty:       {next: true, health: well},
	propose.FaultRefusal:     {health: well},
	propose.FaultFiltered:    {health: well},
	propose.FaultRateLimited: {next: true, health: ill},
	propose.FaultProvider:    {next: true, health: ill},
	propose.FaultUnreachable: {next: true, health: ill},
	propose.FaultTimeout:     {next: true, health: ill},
	propose.FaultPrompt:      {next: true, health: silent},
	propose.FaultCanceled:    {health: silent},
}

// passing reports whether time heals what the endpoint answered. A key that is
// wrong, or a request that it does not take, is not healed by waiting, and is
// no reason to leave it alone before it has happened again and again.
func (f *fault) passing() bool {
	switch s := f.status; {
	case f.code != propose.FaultProvider, s >= 500:
		return true
	default:
		return s == http.StatusRequestTimeout || s == http.StatusTooEarly
	}
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

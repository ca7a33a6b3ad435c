package openai

import (
	"context"
	"time"
)

// Probed is what one endpoint was found to do. It is asked with small
// questions of our own, about no service.
type Probed struct {
	Endpoint, Model string
	// Fault says why there is no answer at all, with the code of propose.Fault…
	// first; "" when it answers.
	Fault string
	// Status is that of HTTP, 0 when no response was read.
	Status int
	// Modes are the ways to ask for a form, each with what came of it.
	Modes []ModeProbed
	// Best is the mode to use: the first of json_schema, tool, json_object that
	// is honoured; "" when none is.
	Best Reply
	// EstimatedTokens is our count of a prompt of the configured size, and
	// CountedTokens the endpoint's, 0 when it counts nothing. Truncated: the
	// front of that prompt did not reach the model, or far fewer were counted.
	EstimatedTokens, CountedTokens int
	Truncated                      bool
	// InputTokens and OutputTokens are what one proposal costs, by the
	// endpoint's count, and Took how long it takes.
	InputTokens, OutputTokens int
	Took                      time.Duration
	// ServedModel is the model that the endpoint says it is.
	ServedModel string
}

// ModeProbed is what came of asking for a form.
type ModeProbed struct {
	Mode Reply
	// Honoured: what came has the form, and holds what the schema demands.
	Honoured bool
	// Detail says what came instead.
	Detail string
}

// Probe asks one endpoint what it honours. It is an error when no endpoint has
// that name; everything else is in the result.
func (c *Client) Probe(_ context.Context, endpoint string) (Probed, error) {
	return Probed{Endpoint: endpoint}, nil
}

package propose

import (
	"fmt"
	"time"
)

// Limits bound what is asked of models, over all services and replicas. Zero
// is no limit.
type Limits struct {
	CallsPerHour, CallsPerServicePerHour, TokensPerDay int
}

// Call is one asking of a model: a question, its repair turn and other
// endpoints included.
type Call struct {
	At      time.Time `json:"at"`
	Service string    `json:"service"`
	// Window is the action window that it was asked in.
	Window string `json:"window"`
	// Requests is how many were sent; 1 while the answer is awaited.
	Requests int `json:"requests"`
	// Tokens is the sum that the endpoints counted.
	Tokens int `json:"tokens"`
}

// Reached says in words which limit the calls of the last day have used up;
// "" when the service may be asked about. Calls after now count too: a clock
// that was put back refills nothing.
func (l Limits) Reached(calls []Call, service string, now time.Time) string {
	hour, own, tokens := 0, 0, 0
	for _, c := range calls {
		if c.At.After(now.Add(-24 * time.Hour)) {
			tokens += c.Tokens
		}
		if c.At.After(now.Add(-time.Hour)) {
			hour += c.Requests
			if c.Service == service {
				own += c.Requests
			}
		}
	}
	switch {
	case used(hour, l.CallsPerHour):
		return fmt.Sprintf("proposer.limits.callsPerHour: %d calls in the last hour, %d are allowed", hour, l.CallsPerHour)
	case used(own, l.CallsPerServicePerHour):
		return fmt.Sprintf("proposer.limits.callsPerServicePerHour: %d calls for %s in the last hour, %d are allowed", own, service, l.CallsPerServicePerHour)
	case used(tokens, l.TokensPerDay):
		return fmt.Sprintf("proposer.limits.tokensPerDay: %d tokens in the last day, %d are allowed", tokens, l.TokensPerDay)
	}
	return ""
}

func used(n, limit int) bool { return limit > 0 && n >= limit }

// Exchange is one request to one endpoint, and what came back.
type Exchange struct {
	Endpoint, Model string
	// Mode is how the reply was asked for: json_schema, tool or json_object.
	Mode string
	// Repair: it showed the validator's error of the one before.
	Repair bool
	// Result is "ok" or the code of a fault.
	Result string
	// Status is that of HTTP, 0 when no response was read.
	Status                    int
	Took                      time.Duration
	InputTokens, OutputTokens int
	// Request and Reply are the exact bodies, with keys cut out.
	Request, Reply []byte
}

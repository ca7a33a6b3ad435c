package openai

import (
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// ResultOK is the result of an attempt that gave a proposal. Other results are
// the codes of propose.Fault….
const ResultOK = "ok"

// Usage is what one asking cost and rests on.
type Usage struct {
	// Attempts are one for each endpoint that was asked, in order.
	Attempts []Attempt
	// PromptVersion and PromptDigest name the templates.
	PromptVersion, PromptDigest string
	// EstimatedPromptTokens is our count before sending; a provider that
	// reports far fewer has cut the prompt in silence.
	EstimatedPromptTokens int
	// TriedOmitted counts attempts that were left out of the prompt for size.
	TriedOmitted int
}

// Attempt is one request to one endpoint.
type Attempt struct {
	Endpoint, Model string
	// Result is ResultOK or the code of the fault.
	Result string
	// Status is the HTTP status, 0 when no response was read.
	Status   int
	Duration time.Duration
	// RetryAfter is how long the provider asked to wait.
	RetryAfter time.Duration
	// ResponseID, ResponseModel and FinishReason are the provider's words.
	ResponseID, ResponseModel, FinishReason      string
	PromptTokens, CompletionTokens, CachedTokens int
	// Request and Reply are the exact bodies, with API keys cut out. The key
	// travels in a header, so the request never holds it.
	Request, Reply []byte
}

// RetryAfter is how long the providers ask us to wait: the shortest of all
// attempts, and 0 when one of them succeeded or asked for nothing.
func (u Usage) RetryAfter() time.Duration {
	var shortest time.Duration
	for i, a := range u.Attempts {
		if a.Result == ResultOK {
			return 0
		}
		if i == 0 || a.RetryAfter < shortest {
			shortest = a.RetryAfter
		}
	}
	return shortest
}

// Tokens is the sum that the providers reported.
func (u Usage) Tokens() (prompt, completion int) {
	for _, a := range u.Attempts {
		prompt += a.PromptTokens
		completion += a.CompletionTokens
	}
	return prompt, completion
}

func (a *Attempt) fill(resp api.ChatCompletionResponse) {
	const words = 100
	a.ResponseID = propose.CleanText(resp.ID, words)
	a.ResponseModel = propose.CleanText(resp.Model, words)
	if len(resp.Choices) > 0 {
		a.FinishReason = propose.CleanText(string(resp.Choices[0].FinishReason), words)
	}
	a.PromptTokens = max(0, resp.Usage.PromptTokens)
	a.CompletionTokens = max(0, resp.Usage.CompletionTokens)
	if d := resp.Usage.PromptTokensDetails; d != nil {
		a.CachedTokens = max(0, d.CachedTokens)
	}
}

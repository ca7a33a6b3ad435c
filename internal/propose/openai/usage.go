package openai

import "github.com/setpoint-dev/setpoint/internal/propose"

// ResultOK is the result of a request that gave a proposal. Other results are
// the codes of propose.Fault….
const ResultOK = "ok"

// Usage is what one asking cost and rests on.
type Usage struct {
	// Exchanges are one for each request that was sent, in order.
	Exchanges []propose.Exchange
	// PromptVersion and PromptDigest name the templates.
	PromptVersion, PromptDigest string
	// EstimatedPromptTokens is our count before sending; a provider that
	// reports far fewer has cut the prompt in silence.
	EstimatedPromptTokens int
	// TriedOmitted counts attempts that were left out of the prompt for size.
	TriedOmitted int
}

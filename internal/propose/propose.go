// Package propose holds what a proposer is asked and what it may answer. It
// takes an assessment with the typed catalogue of one service and gives a
// Request; it takes a reply as bytes from a stranger and gives a Proposal: one
// action with bounded parameters, none, or escalate. It cannot see the gate or
// an executor, so nothing here can act.
package propose

import (
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Parameters are an action's arguments by name. Values are int64, float64,
// string or bool, and nothing else.
type Parameters map[string]any

// Live is the observed state of one action's target, by name. Values are
// int64, float64, string, bool or []string.
type Live map[string]any

// Item is one action of this pass's catalogue, with its bounds resolved
// against the live state.
type Item struct {
	Action spec.Action
	// Live is what the executor observed; LiveKnown is false when it could not.
	Live      Live
	LiveKnown bool
}

// Catalogue is what may be proposed in this pass, in the document's order.
type Catalogue []Item

// Item returns the entry of that action name.
func (c Catalogue) Item(name string) (Item, bool) {
	for _, it := range c {
		if it.Action.Name == name {
			return it, true
		}
	}
	return Item{}, false
}

// Tried is one action already taken, with its measured effect.
type Tried struct {
	Action     string          `json:"action"`
	Parameters Parameters      `json:"parameters"`
	At         time.Time       `json:"at"`
	Effect     string          `json:"effect"`
	Outcome    compare.Outcome `json:"outcome"`
	// Before and After are error ratios; valid for judged outcomes.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// ThisEpisode tells it from earlier ones.
	ThisEpisode bool `json:"thisEpisode"`
}

// Request is everything that a proposer may know.
type Request struct {
	Service    spec.Service
	Episode    string
	Assessment compare.Assessment
	Since      time.Time
	Catalogue  Catalogue
	// Tried is oldest first.
	Tried []Tried
	// TriedOmitted counts older ones that were left out for size.
	TriedOmitted int
	// Remaining is the autonomy budget left, by action name; "" is that of all
	// services together.
	Remaining map[string]float64
	// Dependencies are the states of the services in dependsOn.
	Dependencies map[string]compare.State
	// Breakdowns answer the document's evidence queries, in its order.
	Breakdowns []measure.Breakdown
	// Changes is the change feed of the service, newest first.
	Changes []measure.Change
	Now     time.Time
}

// Kind is what a proposal says.
type Kind string

// The kinds. Malformed is ours: the reply was none of the others.
const (
	KindAction    Kind = "action"
	KindNone      Kind = "none"
	KindEscalate  Kind = "escalate"
	KindMalformed Kind = "malformed"
)

// Proposer names who spoke.
type Proposer struct {
	// Kind is rules, openai or undo.
	Kind string `json:"kind"`
	// Endpoint and Model are empty for rules and undo.
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
}

// Proposal is the one answer of a proposer for one service and window.
type Proposal struct {
	Kind       Kind       `json:"kind"`
	Action     string     `json:"action"`
	Parameters Parameters `json:"parameters"`
	// Rationale is the proposer's own words, at most 500 characters. It is
	// shown to people and reaches no decision.
	Rationale string   `json:"rationale"`
	Proposer  Proposer `json:"proposer"`
	Undo      bool     `json:"undo"`
	// Undoes is the key of the effect that an undo takes back; "" otherwise.
	Undoes string `json:"undoes,omitempty"`
	// Fault says why a reply was malformed, with a stable code first:
	// "malformed: …", "timeout: …", "unreachable: …", "refusal: …".
	Fault string `json:"fault"`
	// Fallback is the fault of the model in whose place the rules spoke; ""
	// otherwise.
	Fallback string `json:"fallback,omitempty"`
}

// The codes that a Fault starts with.
const (
	// FaultMalformed: the reply is not one valid proposal.
	FaultMalformed = "malformed"
	// FaultTruncated: the reply was cut off (finish_reason length).
	FaultTruncated = "truncated"
	// FaultEmpty: the reply holds no answer at all.
	FaultEmpty = "empty"
	// FaultRefusal: the model declined.
	FaultRefusal = "refusal"
	// FaultFiltered: the provider withheld the answer.
	FaultFiltered = "content-filter"
	// FaultRateLimited: the provider answered 429.
	FaultRateLimited = "rate-limited"
	// FaultProvider: the provider answered something other than a completion.
	FaultProvider = "provider-error"
	// FaultUnreachable: no complete answer came over the network.
	FaultUnreachable = "unreachable"
	// FaultTimeout: the deadline passed.
	FaultTimeout = "timeout"
	// FaultCanceled: the asking was given up, e.g. at shutdown.
	FaultCanceled = "canceled"
	// FaultPrompt: the request could not be put to a model, e.g. for its size.
	FaultPrompt = "prompt"
	// FaultLimit: a limit of proposer.limits is used up, so nothing was asked.
	FaultLimit = "limit"
	// FaultResting: every endpoint failed lately and is left alone for a while.
	FaultResting = "resting"
)

// Malformed returns the proposal that stands for an answer which was none.
func Malformed(who Proposer, code, text string) Proposal {
	return Proposal{Kind: KindMalformed, Parameters: Parameters{}, Proposer: who, Fault: code + ": " + text}
}

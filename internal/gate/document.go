package gate

import (
	"encoding/json"
)

// document is the gate input. Every field is required; what is not known is
// "unknown". The JSON Schema is generated from these types.
type document struct {
	Version      string          `json:"version" jsonschema:"the version of this document"`
	Now          string          `json:"now" jsonschema:"the time of the decision, RFC 3339 UTC"`
	Service      serviceIn       `json:"service"`
	State        stateIn         `json:"state" jsonschema:"the measured state of the service"`
	Proposal     proposalIn      `json:"proposal" jsonschema:"what is proposed, without any prose"`
	Action       actionIn        `json:"action" jsonschema:"the proposed action as the reviewed documents have it"`
	Live         liveIn          `json:"live" jsonschema:"the observed state of the action's target"`
	Tried        []triedIn       `json:"tried" jsonschema:"actions already taken, oldest first"`
	Balance      balanceIn       `json:"balance" jsonschema:"the autonomy budget left for this action"`
	Dependencies []dependencyIn  `json:"dependencies" jsonschema:"the services in dependsOn"`
	Changes      []changeIn      `json:"changes" jsonschema:"the change feed, newest first; empty also when there is none"`
	Maintenance  []maintenanceIn `json:"maintenance" jsonschema:"maintenances in force"`
	Exceptions   []exceptionIn   `json:"exceptions" jsonschema:"exceptions in force"`
	Silences     []silenceIn     `json:"silences" jsonschema:"silences in force"`
	Ownership    string          `json:"ownership" jsonschema:"who else controls the target, none or unknown"`
	Window       windowIn        `json:"window"`
	Documents    documentsIn     `json:"documents"`
}

type serviceIn struct {
	Name  string   `json:"name"`
	Owner string   `json:"owner"`
	Mode  modeEnum `json:"mode"`
}

type stateIn struct {
	State        stateEnum     `json:"state"`
	Reason       string        `json:"reason"`
	SinceSeconds numberIn      `json:"sinceSeconds"`
	Episode      string        `json:"episode"`
	Objectives   []objectiveIn `json:"objectives"`
}

type objectiveIn struct {
	ID     string    `json:"id"`
	State  stateEnum `json:"state"`
	Reason string    `json:"reason"`
	// Group is the worst group of an objective that has groups, e.g. host="a";
	// none where it has none.
	Group                string   `json:"group"`
	Target               numberIn `json:"target"`
	JudgeErrorRatio      numberIn `json:"judgeErrorRatio"`
	ErrorBudgetRemaining numberIn `json:"errorBudgetRemaining"`
	SampleAgeSeconds     numberIn `json:"sampleAgeSeconds"`
	BurnRates            []burnIn `json:"burnRates"`
}

type burnIn struct {
	ShortSeconds float64  `json:"shortSeconds"`
	LongSeconds  float64  `json:"longSeconds"`
	Factor       numberIn `json:"factor"`
	Page         bool     `json:"page"`
	ShortRate    numberIn `json:"shortRate"`
	LongRate     numberIn `json:"longRate"`
	Burning      bool     `json:"burning"`
	Covered      bool     `json:"covered"`
}

type proposalIn struct {
	Action     string       `json:"action"`
	Parameters parametersIn `json:"parameters"`
	Undo       bool         `json:"undo"`
	Proposer   proposerIn   `json:"proposer"`
}

type proposerIn struct {
	Kind     string `json:"kind"`
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
}

type actionIn struct {
	Name     string       `json:"name"`
	Uses     string       `json:"uses"`
	Class    classEnum    `json:"class"`
	Reversal reversalEnum `json:"reversal"`
	Mark     markEnum     `json:"mark"`
	Target   string       `json:"target" jsonschema:"the canonical target"`
}

type triedIn struct {
	Action      string       `json:"action"`
	Parameters  parametersIn `json:"parameters"`
	SecondsAgo  numberIn     `json:"secondsAgo"`
	Effect      string       `json:"effect"`
	Outcome     string       `json:"outcome"`
	Before      numberIn     `json:"before"`
	After       numberIn     `json:"after"`
	ThisEpisode bool         `json:"thisEpisode"`
}

type balanceIn struct {
	Remaining numberIn `json:"remaining"`
	Capacity  numberIn `json:"capacity"`
	Global    numberIn `json:"global" jsonschema:"what is left of the global balance"`
}

type dependencyIn struct {
	Service string    `json:"service"`
	State   stateEnum `json:"state"`
}

type changeIn struct {
	SecondsAgo numberIn `json:"secondsAgo"`
	What       string   `json:"what"`
	Version    string   `json:"version"`
}

type maintenanceIn struct {
	ID           string   `json:"id"`
	Effect       modeEnum `json:"effect"`
	By           string   `json:"by"`
	UntilSeconds numberIn `json:"untilSeconds"`
}

type exceptionIn struct {
	Name         string   `json:"name"`
	Effect       modeEnum `json:"effect"`
	Owner        string   `json:"owner"`
	UntilSeconds numberIn `json:"untilSeconds"`
}

type silenceIn struct {
	ID           string   `json:"id"`
	By           string   `json:"by"`
	UntilSeconds numberIn `json:"untilSeconds"`
}

type windowIn struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

type documentsIn struct {
	ChangedSeconds numberIn `json:"changedSeconds" jsonschema:"since the last change of the documents, while it limits to approval"`
}

// The words that are one of a few; their schemas say which.
type (
	stateEnum    string
	modeEnum     string
	classEnum    string
	reversalEnum string
	markEnum     string
)

// parametersIn are an action's arguments.
type parametersIn map[string]any

// numberIn is a number or "unknown".
type numberIn struct {
	Value float64
	Known bool
}

// MarshalJSON writes the number or "unknown".
func (n numberIn) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return json.Marshal(Unknown)
	}
	return json.Marshal(n.Value)
}

// liveIn is an object of observed values or "unknown".
type liveIn struct {
	Known  bool
	Values map[string]any
}

// MarshalJSON writes the object or "unknown".
func (l liveIn) MarshalJSON() ([]byte, error) {
	if !l.Known {
		return json.Marshal(Unknown)
	}
	return json.Marshal(l.Values)
}

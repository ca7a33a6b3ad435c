package gate

import (
	"encoding/json"
	"math"
	"strconv"
)

// document is the gate input. Every field is required; what is not known is
// "unknown". The JSON Schema is generated from these types. Here and below the
// fields stand in the order of their names in JSON, which is the canonical one.
type document struct {
	Action       actionIn        `json:"action" jsonschema:"the proposed action as the reviewed documents have it"`
	Balance      balanceIn       `json:"balance" jsonschema:"the autonomy budget left for this action"`
	Changes      []changeIn      `json:"changes" jsonschema:"the change feed, newest first; empty also when there is none"`
	Dependencies []dependencyIn  `json:"dependencies" jsonschema:"the services in dependsOn"`
	Documents    documentsIn     `json:"documents"`
	Exceptions   []exceptionIn   `json:"exceptions" jsonschema:"exceptions in force"`
	Live         liveIn          `json:"live" jsonschema:"the observed state of the action's target"`
	Maintenance  []maintenanceIn `json:"maintenance" jsonschema:"maintenances in force"`
	Now          string          `json:"now" jsonschema:"the time of the decision, RFC 3339 UTC"`
	Ownership    string          `json:"ownership" jsonschema:"who else controls the target, none or unknown"`
	Proposal     proposalIn      `json:"proposal" jsonschema:"what is proposed, without any prose"`
	Service      serviceIn       `json:"service"`
	Silences     []silenceIn     `json:"silences" jsonschema:"silences in force"`
	State        stateIn         `json:"state" jsonschema:"the measured state of the service"`
	Tried        []triedIn       `json:"tried" jsonschema:"actions already taken, oldest first"`
	Version      string          `json:"version" jsonschema:"the version of this document"`
	Window       windowIn        `json:"window"`
}

type serviceIn struct {
	Mode  modeEnum `json:"mode"`
	Name  string   `json:"name"`
	Owner string   `json:"owner"`
}

type stateIn struct {
	Episode      string        `json:"episode"`
	Objectives   []objectiveIn `json:"objectives"`
	Reason       string        `json:"reason"`
	SinceSeconds numberIn      `json:"sinceSeconds"`
	State        stateEnum     `json:"state"`
}

type objectiveIn struct {
	BurnRates            []burnIn `json:"burnRates"`
	ErrorBudgetRemaining numberIn `json:"errorBudgetRemaining"`
	// Group is the worst group of an objective that has groups, e.g. host="a";
	// none where it has none.
	Group            string    `json:"group"`
	ID               string    `json:"id"`
	JudgeErrorRatio  numberIn  `json:"judgeErrorRatio"`
	Reason           string    `json:"reason"`
	SampleAgeSeconds numberIn  `json:"sampleAgeSeconds"`
	State            stateEnum `json:"state"`
	Target           numberIn  `json:"target"`
}

type burnIn struct {
	Burning      bool     `json:"burning"`
	Covered      bool     `json:"covered"`
	Factor       numberIn `json:"factor"`
	LongRate     numberIn `json:"longRate"`
	LongSeconds  float64  `json:"longSeconds"`
	Page         bool     `json:"page"`
	ShortRate    numberIn `json:"shortRate"`
	ShortSeconds float64  `json:"shortSeconds"`
}

type proposalIn struct {
	Action     string       `json:"action"`
	Parameters parametersIn `json:"parameters"`
	Proposer   proposerIn   `json:"proposer"`
	Undo       bool         `json:"undo"`
}

type proposerIn struct {
	Endpoint string `json:"endpoint"`
	Kind     string `json:"kind"`
	Model    string `json:"model"`
}

type actionIn struct {
	Class    classEnum    `json:"class"`
	Mark     markEnum     `json:"mark"`
	Name     string       `json:"name"`
	Reversal reversalEnum `json:"reversal"`
	Target   string       `json:"target" jsonschema:"the canonical target"`
	Uses     string       `json:"uses"`
}

type triedIn struct {
	Action      string       `json:"action"`
	After       numberIn     `json:"after"`
	Before      numberIn     `json:"before"`
	Effect      string       `json:"effect"`
	Outcome     string       `json:"outcome"`
	Parameters  parametersIn `json:"parameters"`
	SecondsAgo  numberIn     `json:"secondsAgo"`
	ThisEpisode bool         `json:"thisEpisode"`
}

type balanceIn struct {
	Capacity  numberIn `json:"capacity"`
	Global    numberIn `json:"global" jsonschema:"what is left of the global balance"`
	Remaining numberIn `json:"remaining"`
}

type dependencyIn struct {
	Service string    `json:"service"`
	State   stateEnum `json:"state"`
}

type changeIn struct {
	SecondsAgo numberIn `json:"secondsAgo"`
	Version    string   `json:"version"`
	What       string   `json:"what"`
}

type maintenanceIn struct {
	By           string   `json:"by"`
	Effect       modeEnum `json:"effect"`
	ID           string   `json:"id"`
	UntilSeconds numberIn `json:"untilSeconds"`
}

type exceptionIn struct {
	Effect       modeEnum `json:"effect"`
	Name         string   `json:"name"`
	Owner        string   `json:"owner"`
	UntilSeconds numberIn `json:"untilSeconds"`
}

type silenceIn struct {
	By           string   `json:"by"`
	ID           string   `json:"id"`
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

// unknownJSON is Unknown in JSON.
var unknownJSON = []byte(`"` + Unknown + `"`)

// MarshalJSON writes the number or "unknown".
func (n numberIn) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return unknownJSON, nil
	}
	if i := int64(n.Value); float64(i) == n.Value && i <= maxExact && i >= -maxExact && (i != 0 || !math.Signbit(n.Value)) {
		return strconv.AppendInt(nil, i, 10), nil
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
		return unknownJSON, nil
	}
	return json.Marshal(l.Values)
}

package propose

import (
	"maps"
	"slices"
	"strings"
)

// FaultCode is the stable code that a fault starts with; FaultMalformed where it
// has none.
func FaultCode(fault string) string {
	code, _, _ := strings.Cut(fault, ":")
	if _, known := faultWords[code]; !known {
		return FaultMalformed
	}
	return code
}

// FaultCodes are all codes that a fault may start with, sorted.
func FaultCodes() []string { return slices.Sorted(maps.Keys(faultWords)) }

// NoModel reports whether a fault means that no model answered at all, so that
// rules may speak in its place. One that answered badly, or declined, was asked
// and has answered.
func NoModel(fault string) bool {
	switch FaultCode(fault) {
	case FaultRateLimited, FaultProvider, FaultUnreachable, FaultTimeout, FaultLimit, FaultResting, FaultPrompt:
		return true
	}
	return false
}

// Declined reports whether the model, or its provider, would not answer.
func Declined(fault string) bool {
	code := FaultCode(fault)
	return code == FaultRefusal || code == FaultFiltered
}

// faultWords say each fault in words of ours.
var faultWords = map[string]string{
	FaultMalformed:   "the answer is no valid proposal",
	FaultTruncated:   "the answer was cut off",
	FaultEmpty:       "the answer is empty",
	FaultRefusal:     "the model declined",
	FaultFiltered:    "the provider withheld the answer",
	FaultRateLimited: "the endpoint asks to be left alone for a while",
	FaultProvider:    "the endpoint answered with an error",
	FaultUnreachable: "the endpoint cannot be reached",
	FaultTimeout:     "no answer came in time",
	FaultCanceled:    "the question was given up",
	FaultPrompt:      "the question could not be put",
	FaultLimit:       "a limit is used up",
	FaultResting:     "every endpoint is left alone after failures",
}

// Brief says a fault in our own words. A fault itself quotes strangers, who must
// not speak where an on-call reads what to do: a page, the reason of a verdict.
// What was used up, and until when endpoints rest, are words of ours already.
func Brief(fault string) string {
	code := FaultCode(fault)
	text := faultWords[code]
	if code == FaultLimit || code == FaultResting {
		if _, ours, ok := strings.Cut(fault, ": "); ok {
			text = ours
		}
	}
	return text
}

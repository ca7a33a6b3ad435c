package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// DecisionLog is a file that gets one event for each recorded decision, in
// OPA's own shape, as JSON lines.
type DecisionLog struct {
	Path string `yaml:"path,required"`
	// Mask are JSON pointers below /input or /result that are taken out of each
	// event, beside what the bundle's own data.system.log.mask names. The segment
	// * is every element of a list and every key of an object.
	Mask []string `yaml:"mask"`
}

// decisionLog checks a decision log; nil is none. A pointer that leads nowhere
// would keep something in the log that somebody believes to be out of it.
func (k *checker) decisionLog(l *DecisionLog) {
	if l == nil {
		return
	}
	const at = "policies.decisionLog"
	k.set(at+".path", l.Path)
	k.that(!strings.HasSuffix(l.Path, "/"), at+".path", "%q is a folder: name the file", l.Path)
	for i, pointer := range l.Mask {
		if wrong := maskFault(pointer); wrong != "" {
			k.fault(spec.IndexPath(at+".mask", i), "%s", wrong)
		}
	}
}

// pointerEscapes are those of a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// maskFault says why a pointer masks nothing; empty when it can.
func maskFault(pointer string) string {
	parts := strings.Split(pointer, "/")
	switch {
	case len(parts) < 2 || parts[0] != "":
		return fmt.Sprintf("%q is no JSON pointer: write e.g. /input/proposal/parameters/token", pointer)
	case parts[1] == "result":
		return ""
	case parts[1] != "input":
		return fmt.Sprintf("%q names no part that can be masked: begin it with /input or /result", pointer)
	}
	raw, err := gate.SchemaJSON()
	var input shape
	if err == nil {
		err = json.Unmarshal(raw, &input)
	}
	if err != nil {
		return "the schema of the gate input cannot be read: " + err.Error()
	}
	here := []shape{input}
	for i, part := range parts[2:] {
		next, names := step(here, pointerEscapes.Replace(part))
		if len(next) == 0 {
			missing := strings.Join(parts[:i+3], "/")
			if len(names) == 0 {
				return fmt.Sprintf("%q: the gate input has nothing at %s, for above it is a plain value or a list, whose elements are 0, 1, … or *", pointer, missing)
			}
			return fmt.Sprintf("%q: the gate input has nothing at %s, %s", pointer, missing, hint(part, names, func(s string) string { return s }))
		}
		here = next
	}
	return ""
}

// shape is the part of a JSON Schema that says where something can be.
type shape struct {
	Properties           map[string]shape `json:"properties"`
	AdditionalProperties json.RawMessage  `json:"additionalProperties"`
	Items                *shape           `json:"items"`
	AnyOf                []shape          `json:"anyOf"`
}

// step goes one segment down, and names the keys that could stand there.
func step(all []shape, part string) (next []shape, names []string) {
	for _, s := range all {
		below, known := s.below(part)
		next, names = append(next, below...), append(names, known...)
		below, known = step(s.AnyOf, part)
		next, names = append(next, below...), append(names, known...)
	}
	return next, names
}

func (s shape) below(part string) (next []shape, names []string) {
	every := part == "*"
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		names = append(names, name)
		if every || name == part {
			next = append(next, s.Properties[name])
		}
	}
	var other shape
	if s.AdditionalProperties != nil && json.Unmarshal(s.AdditionalProperties, &other) == nil {
		next = append(next, other)
	}
	if _, err := strconv.ParseUint(part, 10, 31); s.Items != nil && (every || err == nil) {
		next = append(next, *s.Items)
	}
	return next, names
}

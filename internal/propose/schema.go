package propose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxShown is how many values from the world one parameter shows to a model.
const maxShown = 20

// Schema is the JSON Schema of a reply: anyOf with one branch for each action
// that can be proposed in this pass, by its constant name and with its bounds
// resolved against the live state, and the branches none and escalate. It is
// what a model is shown, and no permission: Parse and Check decide, which also
// refuse what a schema cannot say (6.0 as an integer, duplicate keys). Equal
// catalogues give equal bytes.
func Schema(c Catalogue) ([]byte, error) {
	root := &jsonschema.Schema{}
	for _, b := range branches(c) {
		root.AnyOf = append(root.AnyOf, replyObject(constant(b.name), b.parameters))
	}
	return marshalSchema(root)
}

// WireSchema is Schema in the form that strict structured output accepts,
// which wants an object at the root: any of the names beside any of the
// parameter objects. Which belong together is left to Parse.
func WireSchema(c Catalogue) ([]byte, error) {
	names := &jsonschema.Schema{Type: "string"}
	parameters := &jsonschema.Schema{}
	seen := map[string]bool{}
	for _, b := range branches(c) {
		names.Enum = append(names.Enum, b.name)
		text, err := json.Marshal(b.parameters)
		if err != nil {
			return nil, fmt.Errorf("schema of action %s: %w", b.name, err)
		}
		if !seen[string(text)] {
			parameters.AnyOf = append(parameters.AnyOf, b.parameters)
		}
		seen[string(text)] = true
	}
	return marshalSchema(replyObject(names, parameters))
}

// marshalSchema writes the empty list of required keys, which the library
// leaves out and strict structured output insists on. In a string the quotes
// would be escaped, so only an empty object's schema matches.
func marshalSchema(s *jsonschema.Schema) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the reply's schema: %w", err)
	}
	return bytes.ReplaceAll(b,
		[]byte(`"properties":{},"additionalProperties"`),
		[]byte(`"properties":{},"required":[],"additionalProperties"`)), nil
}

type branch struct {
	name       string
	parameters *jsonschema.Schema
}

func branches(c Catalogue) []branch {
	var bs []branch
	for _, it := range c {
		if it.Obstacle() == "" {
			bs = append(bs, branch{it.Action.Name, parametersSchema(it)})
		}
	}
	return append(bs,
		branch{string(KindNone), object(nil, nil)},
		branch{string(KindEscalate), object(nil, nil)})
}

// Obstacle is a stable code that says why no parameters of this action can be
// proposed by a model in this pass; empty when some can.
func (it Item) Obstacle() string {
	for _, d := range it.Action.Parameters {
		b, err := it.Bounds(d)
		if err != nil {
			return "live-unknown"
		}
		if lo, hi := b.limits(d.Type); lo != nil && hi != nil && *lo > *hi {
			return "empty-range"
		}
		if values, _ := showable(b.Values); b.Listed && len(values) == 0 {
			return "no-value"
		}
	}
	return ""
}

// limits are the bounds as the type has them: whole numbers for an integer.
func (b Bounds) limits(t spec.ParameterType) (lo, hi *float64) {
	lo, hi = b.Minimum, b.Maximum
	if t != spec.Integer {
		return lo, hi
	}
	if lo != nil {
		up := math.Ceil(*lo)
		lo = &up
	}
	if hi != nil {
		down := math.Floor(*hi)
		hi = &down
	}
	return lo, hi
}

// showable are the values that a prompt may hold, and how many it may not.
func showable(values []string) (shown []string, omitted int) {
	for _, v := range values {
		if plainWord(v) && len(shown) < maxShown {
			shown = append(shown, v)
		} else {
			omitted++
		}
	}
	return shown, omitted
}

func replyObject(action, parameters *jsonschema.Schema) *jsonschema.Schema {
	return object([]string{keyAction, keyParameters, keyRationale}, map[string]*jsonschema.Schema{
		keyAction:     action,
		keyParameters: parameters,
		keyRationale: {
			Type:        "string",
			Description: fmt.Sprintf("why, at most %d characters; shown to people, decides nothing", MaxRationale),
		},
	})
}

// object is a closed object that requires each of its keys.
func object(order []string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	if properties == nil {
		properties = map[string]*jsonschema.Schema{}
	}
	if order == nil {
		order = []string{}
	}
	return &jsonschema.Schema{
		Type:                 "object",
		Properties:           properties,
		PropertyOrder:        order,
		Required:             order,
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

func constant(word string) *jsonschema.Schema {
	var v any = word
	return &jsonschema.Schema{Type: "string", Const: &v}
}

func parametersSchema(it Item) *jsonschema.Schema {
	order, properties := []string{}, map[string]*jsonschema.Schema{}
	for _, d := range it.Action.Parameters {
		order = append(order, d.Name)
		properties[d.Name] = parameterSchema(it, d)
	}
	return object(order, properties)
}

func parameterSchema(it Item, d spec.Parameter) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: string(d.Type)}
	b, err := it.Bounds(d)
	if err != nil { // not reached: Obstacle has resolved it
		return &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	switch d.Type {
	case spec.Integer, spec.Number:
		s.Minimum, s.Maximum = b.limits(d.Type)
	case spec.String:
		values, _ := showable(b.Values)
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
		if portable(d.Pattern) {
			s.Pattern = "^(?:" + d.Pattern + ")$"
		}
	}
	return s
}

var ownSyntax = regexp.MustCompile(`\(\?[^:]|\\[AzZQEpPCaxX]|\[\[:`)

// portable reports whether a pattern means the same in JSON Schema's dialect.
// One that may not is left to Check.
func portable(pattern string) bool {
	return pattern != "" && !ownSyntax.MatchString(pattern) && !strings.ContainsAny(pattern, "\r\n")
}

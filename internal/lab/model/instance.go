package model

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
)

// schema is the part of JSON Schema that an instance is made from.
type schema struct {
	Const            json.RawMessage            `json:"const"`
	Enum             []json.RawMessage          `json:"enum"`
	AnyOf            []json.RawMessage          `json:"anyOf"`
	OneOf            []json.RawMessage          `json:"oneOf"`
	AllOf            json.RawMessage            `json:"allOf"`
	Ref              string                     `json:"$ref"`
	Type             any                        `json:"type"`
	Properties       map[string]json.RawMessage `json:"properties"`
	Required         []string                   `json:"required"`
	Minimum          *float64                   `json:"minimum"`
	Maximum          *float64                   `json:"maximum"`
	ExclusiveMinimum *float64                   `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64                   `json:"exclusiveMaximum"`
	MinLength        int                        `json:"minLength"`
	Pattern          string                     `json:"pattern"`
	Items            json.RawMessage            `json:"items"`
	MinItems         int                        `json:"minItems"`
}

// maxValues bounds an instance, in values, however a schema multiplies itself.
const maxValues = 10_000

// maxPadded bounds a text that is only long, in bytes.
const maxPadded = 10_000

// instance is the first value that a schema allows: the first of an enum, the
// least number, the required keys and no other, the first branch. A schema whose
// demands it cannot be sure to meet is refused, instead of answered wrongly.
func instance(raw json.RawMessage) (json.RawMessage, error) {
	v, err := (&maker{left: maxValues}).value(raw)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid_schema", "the schema demands what has no JSON form: %v", err)
	}
	return b, nil
}

type maker struct{ left int }

func (m *maker) value(raw json.RawMessage) (any, error) {
	if m.left--; m.left < 0 {
		return nil, unmet("it demands more than %d values", maxValues)
	}
	if len(raw) == 0 || string(raw) == "true" {
		return map[string]any{}, nil
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, unmet("it cannot be read: %v", err)
	}
	switch {
	case s.Ref != "" || len(s.AllOf) > 0:
		return nil, unmet("$ref and allOf are not known here")
	case len(s.Const) > 0:
		return s.Const, nil
	case len(s.Enum) > 0:
		return s.Enum[0], nil
	case len(s.AnyOf) > 0:
		return m.value(s.AnyOf[0])
	case len(s.OneOf) > 0:
		return m.value(s.OneOf[0])
	}
	return m.typed(s)
}

// typed makes a value of the first type that a schema names. One without a type
// is an object: replies are objects.
func (m *maker) typed(s schema) (any, error) {
	kind, named := s.Type.(string)
	if several, ok := s.Type.([]any); ok && len(several) > 0 {
		kind, named = several[0].(string)
	}
	switch {
	case !named && s.Type == nil, kind == "object":
		return m.object(s)
	case kind == "array":
		return m.array(s)
	case kind == "integer", kind == "number":
		return s.number(kind == "integer")
	case kind == "string":
		return s.text()
	case kind == "boolean":
		return false, nil
	case kind == "null":
		return nil, nil
	}
	return nil, unmet("type %v is not known here", s.Type)
}

func (m *maker) object(s schema) (any, error) {
	out := map[string]any{}
	for _, name := range s.Required {
		v, err := m.value(s.Properties[name])
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func (m *maker) array(s schema) (any, error) {
	out := []any{}
	for range s.MinItems {
		v, err := m.value(s.Items)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// number is the least that is allowed, and 0 where there is no least.
func (s schema) number(whole bool) (any, error) {
	low, high := math.Inf(-1), math.Inf(1)
	raise := func(v float64) { low = max(low, v) }
	if s.Minimum != nil {
		raise(*s.Minimum)
	}
	if s.ExclusiveMinimum != nil {
		raise(above(*s.ExclusiveMinimum, whole))
	}
	if s.Maximum != nil {
		high = *s.Maximum
	}
	if s.ExclusiveMaximum != nil {
		high = min(high, -above(-*s.ExclusiveMaximum, whole))
	}
	v := low
	if math.IsInf(low, -1) {
		v = min(0, high)
	}
	if whole {
		if v = math.Ceil(v); v > high {
			v = math.Floor(high)
		}
	}
	if v < low || v > high {
		return nil, unmet("no number is between its bounds")
	}
	return v, nil
}

// above is the next number after v.
func above(v float64, whole bool) float64 {
	if whole {
		return math.Floor(v) + 1
	}
	return math.Nextafter(v, math.Inf(1))
}

func (s schema) text() (any, error) {
	switch {
	case s.Pattern != "":
		return nil, unmet("a pattern is not known here")
	case s.MinLength > maxPadded:
		return nil, unmet("a text of %d characters is too long for here", s.MinLength)
	}
	return strings.Repeat("x", max(s.MinLength, 0)), nil
}

func unmet(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "invalid_schema", "the schema is not one that can be honoured here: "+format, args...)
}

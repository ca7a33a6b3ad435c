package regolint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// kind is a set of the kinds that a value may have. Their order is that in which
// Rego sorts values of different kinds.
type kind uint8

const (
	kindNull kind = 1 << iota
	kindBoolean
	kindNumber
	kindText
	kindArray
	kindObject
	kindSet

	aboveNumber = kindText | kindArray | kindObject | kindSet
	belowNumber = kindNull | kindBoolean
)

var kindWords = []string{"null", "true or false", "a number", "text", "a list", "an object", "a set"}

// shape is what the schema, the data or the source says of a value before
// anything is evaluated. A nil shape says nothing.
type shape struct {
	kinds kind
	// words are all that the text can be or, when it is free, words that it can be
	// among others.
	words []string
	free  bool

	fields map[string]field
	// closed: there are no other fields; other is what those hold.
	closed bool
	other  *shape
	items  *shape
}

type field struct {
	*shape
	required bool
}

// inputShape is the shape of the gate input.
func inputShape() (*shape, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	in := ofSchema(&s)
	for _, path := range unknownText {
		if err := in.mayBeUnknown(strings.Split(path, ".")); err != nil {
			return nil, fmt.Errorf("schema of the gate input: %s: %w", path, err)
		}
	}
	return in, nil
}

// unknownText are the fields of free text that are the word for what is not known
// when nobody knows: a schema cannot say that of free text.
var unknownText = []string{
	"state.reason", "state.episode", "state.objectives.*.reason", "ownership", "proposal.proposer.kind",
	"action.uses", "action.target", "tried.*.effect", "tried.*.outcome", "window.id", "window.key",
}

// mayBeUnknown marks the text below a path. A step * is each element.
func (s *shape) mayBeUnknown(path []string) error {
	switch {
	case s == nil:
		return errors.New("no such field")
	case len(path) == 0:
		s.words = append(s.words, gate.Unknown)
		return nil
	case path[0] == "*":
		return s.items.mayBeUnknown(path[1:])
	}
	return s.fields[path[0]].mayBeUnknown(path[1:])
}

func ofSchema(s *jsonschema.Schema) *shape {
	if len(s.AnyOf) > 0 {
		var all []*shape
		for _, alternative := range s.AnyOf {
			all = append(all, ofSchema(alternative))
		}
		return union(all)
	}
	switch s.Type {
	case "boolean":
		return &shape{kinds: kindBoolean}
	case "number", "integer":
		return &shape{kinds: kindNumber}
	case "string":
		out := &shape{kinds: kindText, free: len(s.Enum) == 0}
		for _, w := range s.Enum {
			out.words = append(out.words, fmt.Sprint(w))
		}
		return out
	case "array":
		out := &shape{kinds: kindArray}
		if s.Items != nil {
			out.items = ofSchema(s.Items)
		}
		return out
	case "object":
		return ofObject(s)
	}
	return nil
}

func ofObject(s *jsonschema.Schema) *shape {
	out := &shape{kinds: kindObject, fields: map[string]field{}}
	for name, p := range s.Properties {
		out.fields[name] = field{ofSchema(p), slices.Contains(s.Required, name)}
	}
	if more := s.AdditionalProperties; more != nil && more.Not != nil {
		out.closed = true
	} else if more != nil {
		out.other = ofSchema(more)
	}
	return out
}

// ofData is the shape of what a data file holds. A value there may be changed,
// its kind and its presence are checked with each bundle.
func ofData(v any) *shape {
	switch v := v.(type) {
	case bool:
		return &shape{kinds: kindBoolean}
	case string:
		return &shape{kinds: kindText, free: true}
	case json.Number, float64, int:
		return &shape{kinds: kindNumber}
	case []any:
		var all []*shape
		for _, e := range v {
			all = append(all, ofData(e))
		}
		return &shape{kinds: kindArray, items: union(all)}
	case map[string]any:
		out := &shape{kinds: kindObject, fields: map[string]field{}}
		var all []*shape
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s := ofData(v[name])
			out.fields[name] = field{s, true}
			all = append(all, s)
		}
		out.other = union(all)
		return out
	}
	return nil
}

// ofLiteral is the shape of what stands in the source.
func ofLiteral(v ast.Value) *shape {
	switch v := v.(type) {
	case ast.Null:
		return &shape{kinds: kindNull}
	case ast.Boolean:
		return &shape{kinds: kindBoolean}
	case ast.Number:
		return &shape{kinds: kindNumber}
	case ast.String:
		return &shape{kinds: kindText, words: []string{string(v)}}
	case *ast.Array, *ast.ArrayComprehension:
		return &shape{kinds: kindArray}
	case ast.Set, *ast.SetComprehension:
		return &shape{kinds: kindSet}
	case ast.Object, *ast.ObjectComprehension:
		return &shape{kinds: kindObject}
	}
	return nil
}

// union is the shape of a value that has one of the shapes.
func union(all []*shape) *shape {
	if len(all) == 0 || slices.Contains(all, nil) {
		return nil
	}
	out := *all[0]
	for _, s := range all[1:] {
		out = join(out, *s)
	}
	return &out
}

func join(a, b shape) shape {
	out := shape{
		kinds: a.kinds | b.kinds, free: a.free || b.free,
		words: slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.words, b.words)))),
	}
	switch {
	case b.kinds&kindObject == 0:
		out.fields, out.closed, out.other = a.fields, a.closed, a.other
	case a.kinds&kindObject == 0:
		out.fields, out.closed, out.other = b.fields, b.closed, b.other
	default:
		out.fields = map[string]field{}
		for name, f := range a.fields {
			if g, both := b.fields[name]; both {
				out.fields[name] = field{union([]*shape{f.shape, g.shape}), f.required && g.required}
			}
		}
	}
	switch {
	case b.kinds&kindArray == 0:
		out.items = a.items
	case a.kinds&kindArray == 0:
		out.items = b.items
	default:
		out.items = union([]*shape{a.items, b.items})
	}
	return out
}

// unknown reports whether the value may be the word for what is not known.
func (s *shape) unknown() bool {
	return s != nil && s.kinds&kindText != 0 && slices.Contains(s.words, gate.Unknown)
}

// compared are the kinds that a comparison by size is meant for: without the
// word for what is not known.
func (s *shape) compared() kind {
	if s.unknown() && !s.free && s.kinds != kindText {
		return s.kinds &^ kindText
	}
	return s.kinds
}

// meets reports whether some value has both shapes.
func (s *shape) meets(other *shape) bool {
	both := s.kinds & other.kinds
	if both != kindText || s.free || other.free {
		return both != 0
	}
	return slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(other.words, w) })
}

// String describes the values, e.g. a number or "unknown".
func (s *shape) String() string {
	var parts []string
	for i, w := range kindWords {
		switch k := kind(1 << i); {
		case s.kinds&k == 0:
		case k == kindText && !s.free:
			for _, word := range s.words {
				parts = append(parts, fmt.Sprintf("%q", word))
			}
		default:
			parts = append(parts, w)
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " or " + parts[n-1]
	}
	return strings.Join(parts, "")
}

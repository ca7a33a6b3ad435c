package terms

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

// Kind is a set of the kinds that a value may have. Their order is that in which
// Rego sorts values of different kinds.
type Kind uint8

// The kinds, and those that sort above and below every number.
const (
	Null Kind = 1 << iota
	Boolean
	Number
	Text
	Array
	Object
	Set

	AboveNumber = Text | Array | Object | Set
	BelowNumber = Null | Boolean
)

var kindWords = []string{"null", "true or false", "a number", "text", "a list", "an object", "a set"}

// Shape is what the schema, the data or the source says of a value before
// anything is evaluated. A nil shape says nothing.
type Shape struct {
	Kinds Kind
	// Words are all that the text can be or, when it is free, words that it can be
	// among others.
	Words []string
	free  bool

	fields map[string]field
	// closed: there are no other fields; other is what those hold.
	closed bool
	other  *Shape
	items  *Shape
}

type field struct {
	*Shape
	required bool
}

// inputShape is the shape of the gate input.
func inputShape() (*Shape, error) {
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
func (s *Shape) mayBeUnknown(path []string) error {
	switch {
	case s == nil:
		return errors.New("no such field")
	case len(path) == 0:
		s.Words = append(s.Words, gate.Unknown)
		return nil
	case path[0] == "*":
		return s.items.mayBeUnknown(path[1:])
	}
	return s.fields[path[0]].mayBeUnknown(path[1:])
}

func ofSchema(s *jsonschema.Schema) *Shape {
	if len(s.AnyOf) > 0 {
		var all []*Shape
		for _, alternative := range s.AnyOf {
			all = append(all, ofSchema(alternative))
		}
		return union(all)
	}
	switch s.Type {
	case "boolean":
		return &Shape{Kinds: Boolean}
	case "number", "integer":
		return &Shape{Kinds: Number}
	case "string":
		out := &Shape{Kinds: Text, free: len(s.Enum) == 0}
		for _, w := range s.Enum {
			out.Words = append(out.Words, fmt.Sprint(w))
		}
		return out
	case "array":
		out := &Shape{Kinds: Array}
		if s.Items != nil {
			out.items = ofSchema(s.Items)
		}
		return out
	case "object":
		return ofObject(s)
	}
	return nil
}

func ofObject(s *jsonschema.Schema) *Shape {
	out := &Shape{Kinds: Object, fields: map[string]field{}}
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
func ofData(v any) *Shape {
	switch v := v.(type) {
	case bool:
		return &Shape{Kinds: Boolean}
	case string:
		return &Shape{Kinds: Text, free: true}
	case json.Number, float64, int:
		return &Shape{Kinds: Number}
	case []any:
		var all []*Shape
		for _, e := range v {
			all = append(all, ofData(e))
		}
		return &Shape{Kinds: Array, items: union(all)}
	case map[string]any:
		out := &Shape{Kinds: Object, fields: map[string]field{}}
		var all []*Shape
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
func ofLiteral(v ast.Value) *Shape {
	switch v := v.(type) {
	case ast.Null:
		return &Shape{Kinds: Null}
	case ast.Boolean:
		return &Shape{Kinds: Boolean}
	case ast.Number:
		return &Shape{Kinds: Number}
	case ast.String:
		return &Shape{Kinds: Text, Words: []string{string(v)}}
	case *ast.Array, *ast.ArrayComprehension:
		return &Shape{Kinds: Array}
	case ast.Set, *ast.SetComprehension:
		return &Shape{Kinds: Set}
	case ast.Object, *ast.ObjectComprehension:
		return &Shape{Kinds: Object}
	}
	return nil
}

// union is the shape of a value that has one of the shapes.
func union(all []*Shape) *Shape {
	if len(all) == 0 || slices.Contains(all, nil) {
		return nil
	}
	out := *all[0]
	for _, s := range all[1:] {
		out = join(out, *s)
	}
	return &out
}

func join(a, b Shape) Shape {
	out := Shape{
		Kinds: a.Kinds | b.Kinds, free: a.free || b.free,
		Words: slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Words, b.Words)))),
	}
	switch {
	case b.Kinds&Object == 0:
		out.fields, out.closed, out.other = a.fields, a.closed, a.other
	case a.Kinds&Object == 0:
		out.fields, out.closed, out.other = b.fields, b.closed, b.other
	default:
		out.fields = map[string]field{}
		for name, f := range a.fields {
			if g, both := b.fields[name]; both {
				out.fields[name] = field{union([]*Shape{f.Shape, g.Shape}), f.required && g.required}
			}
		}
	}
	switch {
	case b.Kinds&Array == 0:
		out.items = a.items
	case a.Kinds&Array == 0:
		out.items = b.items
	default:
		out.items = union([]*Shape{a.items, b.items})
	}
	return out
}

// Unknown reports whether the value may be the word for what is not known.
func (s *Shape) Unknown() bool {
	return s != nil && s.Kinds&Text != 0 && slices.Contains(s.Words, gate.Unknown)
}

// Compared are the kinds that a comparison by size is meant for: without the
// word for what is not known.
func (s *Shape) Compared() Kind {
	if s.Unknown() && !s.free && s.Kinds != Text {
		return s.Kinds &^ Text
	}
	return s.Kinds
}

// Meets reports whether some value has both shapes.
func (s *Shape) Meets(other *Shape) bool {
	both := s.Kinds & other.Kinds
	if both != Text || s.free || other.free {
		return both != 0
	}
	return slices.ContainsFunc(s.Words, func(w string) bool { return slices.Contains(other.Words, w) })
}

// String describes the values, e.g. a number or "unknown".
func (s *Shape) String() string {
	var parts []string
	for i, w := range kindWords {
		switch k := Kind(1 << i); {
		case s.Kinds&k == 0:
		case k == Text && !s.free:
			for _, word := range s.Words {
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

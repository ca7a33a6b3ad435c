package rego

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// parseInput checks the bytes of an input against its schema and gives the value
// that is evaluated. It does both in one pass over the decoded document, because
// checking by the general validator takes as long as the policy itself; what that
// one says of an input, this one says too (FuzzParseInput).
func parseInput(input []byte) (ast.Value, error) {
	if len(input) > gate.MaxInput {
		_, err := gate.DecodeInput(input)
		return nil, err
	}
	s, err := inputShape()
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber() // The text of a number is its value; nothing is rounded.
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("gate input is not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("gate input: more than one JSON value")
	}
	if t := s.term(doc); t != nil {
		return t.Value, nil
	}
	// Something is wrong: the general validator says what.
	if _, err := gate.DecodeInput(input); err != nil {
		return nil, err
	}
	return nil, errors.New("gate input does not match its schema")
}

// shape is a JSON Schema of the kind that the gate input has, with what its
// values need made once.
type shape struct {
	// kind is the JSON type; "" with anyOf.
	kind string
	// words are the values of an enumeration; nil without.
	words map[string]*ast.Term
	// fields are those of an object, all of them required.
	fields map[string]field
	// rest is what every field of an object without fixed ones is.
	rest *shape
	// items is what every element of an array is.
	items *shape
	anyOf []*shape
}

type field struct {
	name *ast.Term
	*shape
}

var inputShape = sync.OnceValues(func() (*shape, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return nil, err
	}
	var s schema
	dec := json.NewDecoder(bytes.NewReader(raw))
	// A keyword that is not known here must not go unchecked.
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	return s.shape("input")
})

// schema is the part of JSON Schema that the gate input uses.
type schema struct {
	Type       string            `json:"type"`
	Enum       []string          `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	// AdditionalProperties is false or a schema.
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
	Items                *schema         `json:"items"`
	AnyOf                []schema        `json:"anyOf"`

	// The rest says nothing that is checked; the time in now is parsed apart.
	Schema      string `json:"$schema"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Format      string `json:"format"`
}

func (s schema) shape(at string) (*shape, error) {
	out := &shape{kind: s.Type}
	if len(s.Enum) > 0 {
		out.words = map[string]*ast.Term{}
		for _, w := range s.Enum {
			out.words[w] = ast.StringTerm(w)
		}
	}
	var err error
	for _, one := range s.AnyOf {
		var sub *shape
		if sub, err = one.shape(at); err != nil {
			return nil, err
		}
		out.anyOf = append(out.anyOf, sub)
	}
	if s.Items != nil {
		if out.items, err = s.Items.shape(at + "[]"); err != nil {
			return nil, err
		}
	}
	if s.Type == "object" {
		return out, s.object(out, at)
	}
	return out, s.whole(at)
}

// whole refuses a schema that leaves open what a value may be.
func (s schema) whole(at string) error {
	switch {
	case s.Type == "array" && s.Items == nil:
		return fmt.Errorf("schema of the gate input: %s says nothing of its elements", at)
	case s.Type == "" && len(s.AnyOf) > 0:
		return nil
	case !slices.Contains([]string{"array", "string", "number", "boolean"}, s.Type):
		return fmt.Errorf("schema of the gate input: %s has type %q", at, s.Type)
	}
	return nil
}

func (s schema) object(out *shape, at string) error {
	if len(s.Properties) == 0 {
		var rest schema
		if err := json.Unmarshal(s.AdditionalProperties, &rest); err != nil {
			return fmt.Errorf("schema of the gate input: fields of %s: %w", at, err)
		}
		var err error
		out.rest, err = rest.shape(at + ".*")
		return err
	}
	if string(s.AdditionalProperties) != "false" || len(s.Required) != len(s.Properties) {
		return fmt.Errorf("schema of the gate input: %s leaves fields open", at)
	}
	out.fields = map[string]field{}
	for name, p := range s.Properties {
		sub, err := p.shape(at + "." + name)
		if err != nil {
			return err
		}
		if !slices.Contains(s.Required, name) {
			return fmt.Errorf("schema of the gate input: %s.%s is not required", at, name)
		}
		out.fields[name] = field{ast.StringTerm(name), sub}
	}
	return nil
}

// term is the value as OPA has it, or nil where it has another shape.
func (s *shape) term(v any) *ast.Term {
	if s.anyOf != nil {
		for _, one := range s.anyOf {
			if t := one.term(v); t != nil {
				return t
			}
		}
		return nil
	}
	switch v := v.(type) {
	case string:
		return s.text(v)
	case json.Number:
		return s.number(v)
	case bool:
		if s.kind == "boolean" {
			return ast.InternedTerm(v)
		}
	case []any:
		return s.list(v)
	case map[string]any:
		return s.fieldsOf(v)
	}
	return nil
}

func (s *shape) number(v json.Number) *ast.Term {
	if _, err := strconv.ParseFloat(string(v), 64); s.kind != "number" || err != nil {
		return nil
	}
	return ast.NumberTerm(v)
}

func (s *shape) text(v string) *ast.Term {
	switch {
	case s.kind != "string":
		return nil
	case s.words != nil:
		return s.words[v]
	}
	return ast.StringTerm(v)
}

func (s *shape) list(v []any) *ast.Term {
	if s.kind != "array" {
		return nil
	}
	terms := make([]*ast.Term, len(v))
	for i, e := range v {
		if terms[i] = s.items.term(e); terms[i] == nil {
			return nil
		}
	}
	return ast.ArrayTerm(terms...)
}

func (s *shape) fieldsOf(v map[string]any) *ast.Term {
	if s.kind != "object" || s.fields != nil && len(v) != len(s.fields) {
		return nil
	}
	pairs := make([][2]*ast.Term, 0, len(v))
	for name, e := range v {
		key, of := (*ast.Term)(nil), s.rest
		if f, ok := s.fields[name]; ok {
			key, of = f.name, f.shape
		}
		if of == nil {
			return nil
		}
		t := of.term(e)
		if t == nil {
			return nil
		}
		if key == nil {
			key = ast.StringTerm(name)
		}
		pairs = append(pairs, [2]*ast.Term{key, t})
	}
	return ast.ObjectTerm(pairs...)
}

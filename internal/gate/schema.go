package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

//go:generate go test -run TestSchemaFile . -update

// ErrInputTooLarge is the error for an input above MaxInput.
var ErrInputTooLarge = errors.New("gate input is larger than 256 KiB")

// SchemaJSON is the JSON Schema of the input, generated from the Go type.
func SchemaJSON() ([]byte, error) {
	s, err := inputSchema()
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("gate schema: %w", err)
	}
	return append(out, '\n'), nil
}

// ValidateInput checks bytes against the schema: every field present, no
// nulls, nothing unknown.
func ValidateInput(input []byte) error {
	_, err := DecodeInput(input)
	return err
}

// DecodeInput is ValidateInput that also gives the decoded value, so that
// policy sees exactly what was checked. Numbers are float64, which canonical
// JSON loses nothing by.
func DecodeInput(input []byte) (any, error) {
	if len(input) > MaxInput {
		return nil, fmt.Errorf("%w: %d bytes", ErrInputTooLarge, len(input))
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("gate input is not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("gate input: more than one JSON value")
	}
	s, err := resolvedSchema()
	if err != nil {
		return nil, err
	}
	if err := s.Validate(v); err != nil {
		return nil, fmt.Errorf("gate input does not match its schema: %w", err)
	}
	return v, nil
}

var resolvedSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	s, err := inputSchema()
	if err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("gate schema: %w", err)
	}
	return r, nil
})

func inputSchema() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[document](&jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		return nil, fmt.Errorf("gate schema: %w", err)
	}
	noNulls(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = InputVersion
	s.Properties["version"].Enum = []any{InputVersion}
	s.Properties["now"].Format = "date-time"
	return s, nil
}

func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	value := []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}
	live := append(value[:3:3], &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}})
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[numberIn]():     orUnknownSchema(&jsonschema.Schema{Type: "number"}),
		reflect.TypeFor[parametersIn](): {Type: "object", AdditionalProperties: &jsonschema.Schema{AnyOf: value}},
		reflect.TypeFor[liveIn](): orUnknownSchema(&jsonschema.Schema{Type: "object",
			AdditionalProperties: &jsonschema.Schema{AnyOf: live}}),
		reflect.TypeFor[stateEnum](): words(compare.Met, compare.Breached, compare.Unknown),
		reflect.TypeFor[modeEnum](): words(spec.Observe.String(), spec.Suggest.String(), spec.Approval.String(),
			spec.Auto.String()),
		reflect.TypeFor[classEnum]():    words(spec.ClassAuto, spec.ClassApproval, spec.ClassEscalate, Unknown),
		reflect.TypeFor[reversalEnum](): words(spec.Transient, spec.Restore, spec.Irreversible, Unknown),
		reflect.TypeFor[markEnum]():     words(spec.MarkDedup, spec.MarkConditional, spec.MarkQuery, spec.MarkUnmarked, Unknown),
	}
}

func words[S ~string](ws ...S) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range ws {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

func orUnknownSchema(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "string", Enum: []any{Unknown}}}}
}

// noNulls takes the null away that a Go slice may be in JSON; BuildInput writes
// empty lists. A null would sort below every number in Rego.
func noNulls(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		noNulls(p)
	}
	noNulls(s.Items)
	noNulls(s.AdditionalProperties)
}

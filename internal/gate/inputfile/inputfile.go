// Package inputfile reads a gate input that a person wrote. It takes a file and
// gives the input, or everything that is wrong with it, each with its line: what
// is misspelt, missing or of another type.
package inputfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Check reads the JSON of a file against the schema of the gate input. The error
// is spec.Faults.
func Check(f spec.File) error {
	if len(f.Data) > gate.MaxInput {
		return spec.Faults{{Pos: spec.Position{File: f.Name}, Text: fmt.Sprintf("has %d bytes, an input at most %d", len(f.Data), gate.MaxInput)}}
	}
	schema, err := inputSchema()
	if err != nil {
		return err
	}
	c := checker{lines: readLines(f)}
	if len(c.faults) > 0 {
		return c.faults.Err()
	}
	var doc any
	if err := json.Unmarshal(f.Data, &doc); err != nil {
		return spec.Faults{{Pos: spec.Position{File: f.Name, Line: 1}, Text: err.Error()}}
	}
	c.check(schema, "", doc)
	if len(c.faults) == 0 {
		c.checkNow(doc)
	}
	if len(c.faults) == 0 {
		// The schema has the last word.
		if err := gate.ValidateInput(f.Data); err != nil {
			c.fault("", "%v", err)
		}
	}
	return c.faults.Err()
}

var inputSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("schema of the gate input: %w", err)
	}
	return &s, nil
})

// checker collects what is wrong.
type checker struct{ lines }

func (c *checker) fault(path, format string, args ...any) {
	c.faults = append(c.faults, spec.Fault{Pos: c.at(path), Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) check(s *jsonschema.Schema, path string, v any) {
	if object, ok := v.(map[string]any); ok {
		switch inner := objectOf(s); {
		case len(s.Properties) > 0:
			c.checkObject(s, path, object)
			return
		case inner != nil && inner.AdditionalProperties != nil:
			for _, name := range slices.Sorted(maps.Keys(object)) {
				c.check(inner.AdditionalProperties, spec.KeyPath(path, name), object[name])
			}
			return
		}
	}
	if list, ok := v.([]any); ok && s.Type == "array" && s.Items != nil {
		for i, e := range list {
			c.check(s.Items, spec.IndexPath(path, i), e)
		}
		return
	}
	if !fits(s, v) {
		c.misfit(s, path, v)
	}
}

// objectOf is the object that a value may be, alone or beside others.
func objectOf(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type == "object" {
		return s
	}
	for _, one := range s.AnyOf {
		if one.Type == "object" {
			return one
		}
	}
	return nil
}

func (c *checker) checkObject(s *jsonschema.Schema, path string, v map[string]any) {
	known := slices.Sorted(maps.Keys(s.Properties))
	var missing []string
	for _, name := range known {
		if _, ok := v[name]; !ok {
			missing = append(missing, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		at := spec.KeyPath(path, name)
		if p := s.Properties[name]; p != nil {
			c.check(p, at, v[name])
			continue
		}
		hint := "there are " + strings.Join(known, ", ")
		if near := spec.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.fault(at, "is not in a gate input, %s", hint)
	}
	if len(missing) > 0 {
		c.fault(path, "has no %s; what is not known is \"unknown\", and `setpoint policy schema --example` prints an input with every field", strings.Join(missing, ", "))
	}
}

// fits reports whether the value is as the schema wants it.
func fits(s *jsonschema.Schema, v any) bool {
	r, err := s.Resolve(nil)
	return err == nil && r.Validate(v) == nil
}

func (c *checker) misfit(s *jsonschema.Schema, path string, v any) {
	text := fmt.Sprintf("is %s, want %s", valueText(v), wanted(s))
	if word, ok := v.(string); ok {
		if near := spec.Nearest(word, enum(s)); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	c.fault(path, "%s", text)
}

// valueText shows a value that is short, and the kind of another.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(clip(v))
	case bool, float64:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	}
	return "an object"
}

func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// wanted is a schema in words.
func wanted(s *jsonschema.Schema) string {
	if len(s.AnyOf) > 0 {
		var parts []string
		for _, one := range s.AnyOf {
			parts = append(parts, wanted(one))
		}
		return either(parts)
	}
	if words := enum(s); len(words) > 0 {
		return either(words)
	}
	if word, ok := map[string]string{
		"string": "text", "number": "a number", "boolean": "true or false", "array": "a list", "object": "an object",
	}[s.Type]; ok {
		return word
	}
	return "another value"
}

func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// enum are the words that a schema knows.
func enum(s *jsonschema.Schema) (words []string) {
	for _, one := range append([]*jsonschema.Schema{s}, s.AnyOf...) {
		for _, w := range one.Enum {
			words = append(words, fmt.Sprint(w))
		}
	}
	return words
}

// checkNow reads the time as policy does.
func (c *checker) checkNow(doc any) {
	object, _ := doc.(map[string]any)
	now, _ := object["now"].(string)
	if _, err := time.Parse(time.RFC3339Nano, now); err != nil {
		c.fault("now", "is %q, want a time such as 2026-11-29T03:00:00Z", clip(now))
	}
}

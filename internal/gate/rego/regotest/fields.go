package regotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// fields are those of the gate input, to tell the line of a wrong one.
type fields struct{ *jsonschema.Schema }

func inputFields() (fields, error) {
	raw, err := gate.SchemaJSON()
	if err != nil {
		return fields{}, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fields{}, fmt.Errorf("schema of the gate input: %w", err)
	}
	return fields{&s}, nil
}

// check tells which parts of a value are no part of the input. Fields may be
// missing from objects, because changes name those that change; an element of
// a list is given whole.
func (f fields) check(v spec.Value) spec.Faults {
	if v.IsMapping() && len(f.Properties) > 0 {
		return f.checkObject(v)
	}
	var list []spec.Value
	if f.Items == nil || len(v.Decode(&list)) > 0 {
		return f.checkPlain(v)
	}
	element := fields{f.Items}
	var faults spec.Faults
	for _, e := range list {
		faults = append(faults, element.check(e)...)
		if missing := element.missing(e); len(missing) > 0 {
			faults = append(faults, e.Fault("lacks %s: an element of a list is given whole", strings.Join(missing, ", ")))
		}
	}
	return faults
}

func (f fields) checkObject(v spec.Value) (faults spec.Faults) {
	for key, child := range v.Pairs() {
		p, known := f.Properties[key]
		if known {
			faults = append(faults, (fields{p}).check(child)...)
			continue
		}
		names := slices.Sorted(maps.Keys(f.Properties))
		hint := "there are " + strings.Join(names, ", ")
		if near := spec.Nearest(key, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		faults = append(faults, child.Fault("is not in the gate input, %s", hint))
	}
	return faults
}

// missing are the fields that an object lacks.
func (f fields) missing(v spec.Value) (names []string) {
	for _, name := range f.Required {
		if _, ok := v.Child(name); v.IsMapping() && !ok {
			names = append(names, name)
		}
	}
	return names
}

// checkPlain compares a value that is no object of known fields.
func (f fields) checkPlain(v spec.Value) spec.Faults {
	var x any
	if faults := v.Decode(&x); len(faults) > 0 {
		return faults
	}
	// The schema knows JSON's types alone.
	raw, err := json.Marshal(x)
	if err == nil {
		err = json.Unmarshal(raw, &x)
	}
	var s *jsonschema.Resolved
	if err == nil {
		s, err = f.Resolve(nil)
	}
	if err != nil {
		return spec.Faults{v.Fault("cannot be compared with the gate input: %s", err)}
	}
	if s.Validate(x) != nil {
		return spec.Faults{v.Fault("want %s", f.wants())}
	}
	return nil
}

// wants is the type of a field for people.
func (f fields) wants() string {
	var words []string
	switch {
	case len(f.AnyOf) > 0:
		for _, s := range f.AnyOf {
			words = append(words, (fields{s}).wants())
		}
	case len(f.Enum) > 0:
		for _, e := range f.Enum {
			words = append(words, fmt.Sprint(e))
		}
	case f.Type == "object" && f.AdditionalProperties != nil && len(f.Properties) == 0:
		return "an object, each value " + (fields{f.AdditionalProperties}).wants()
	case f.Type == "array" && f.Items != nil && f.Items.Type == "string":
		return "a list of texts"
	default:
		return map[string]string{
			"string": "text", "number": "a number", "boolean": "true or false", "array": "a list", "object": "an object",
		}[f.Type]
	}
	return strings.Join(words, " or ")
}

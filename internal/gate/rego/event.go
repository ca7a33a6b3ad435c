package rego

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// MaskPackage is the package whose set mask says what is left out of the
// decision log, as OPA has it.
const MaskPackage = "system.log"

// eventSchemaRef names the schema of one event of the decision log, which is the
// input of MaskPackage.
var eventSchemaRef = ast.MustParseRef("schema.event")

// eventSchema is the shape of an event as OPA logs it, around the gate input.
func eventSchema(input map[string]any) map[string]any {
	input = maps.Clone(input)
	delete(input, "$schema") // It stands only at the root of a schema.
	text, anything := map[string]any{"type": "string"}, map[string]any{}
	return map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"decision_id": text, "path": text, "timestamp": text, "trace_id": text, "span_id": text,
			"labels":  map[string]any{"type": "object", "additionalProperties": text},
			"bundles": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "object", "properties": map[string]any{"revision": text}}},
			"input":   input, "result": anything, "error": anything, "metrics": anything, "custom": anything,
		},
	}
}

// typeInputs says of which type the input of each module is: an event in
// MaskPackage, which OPA's annotations can say, and the gate input everywhere
// else, whatever schemas the author's own annotations name.
func typeInputs(modules map[string]*ast.Module) {
	event := []*ast.SchemaAnnotation{{Path: ast.InputRootRef, Schema: eventSchemaRef}}
	var first *ast.Module
	var words *ast.Annotations
	for _, p := range slices.Sorted(maps.Keys(modules)) {
		m := modules[p]
		masks := m.Package.Path.String() == "data."+MaskPackage && !isTest(p)
		if masks && first == nil {
			first = m
		}
		for _, a := range m.Annotations {
			a.Schemas = nil
			if masks && a.Scope == "package" {
				words = a
			}
		}
	}
	switch {
	case words != nil: // A package is annotated once.
		words.Schemas = event
	case first != nil:
		a := ast.Annotations{Scope: "package", Location: first.Package.Location, Schemas: event}
		first.Annotations = append(first.Annotations, a.Copy(first.Package))
	}
}

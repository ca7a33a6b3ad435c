package spec

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Value is one value of a document with its place.
type Value struct {
	node      *yaml.Node
	positions Positions
	path      string
}

// Pos returns the place of the value.
func (v Value) Pos() Position { return v.positions.At(v.path) }

// Path returns the path of the value inside its document.
func (v Value) Path() string { return v.path }

// Fault returns a fault at the value.
func (v Value) Fault(format string, args ...any) Fault {
	return v.positions.Fault(v.path, format, args...)
}

// IsMapping reports whether the value is a mapping.
func (v Value) IsMapping() bool { return v.node != nil && v.node.Kind == yaml.MappingNode }

// Text returns the value when it is text.
func (v Value) Text() (string, bool) {
	if v.node == nil || v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!str" {
		return "", false
	}
	return v.node.Value, true
}

// Scalar returns the value as it is written when it is a plain one of any type:
// text, a number, a word such as true. None is an empty one or a null.
func (v Value) Scalar() (string, bool) {
	if v.node == nil || v.node.Kind != yaml.ScalarNode || v.node.Value == "" {
		return "", false
	}
	switch v.node.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return v.node.Value, true
	}
	return "", false
}

// Child returns the value of a key of a mapping.
func (v Value) Child(key string) (Value, bool) {
	if v.node == nil {
		return Value{}, false
	}
	c := child(v.node, key)
	return Value{node: c, positions: v.positions, path: KeyPath(v.path, key)}, c != nil
}

// Pairs yields the keys of a mapping in the document's order; nothing for
// another kind of value.
func (v Value) Pairs() func(func(string, Value) bool) {
	return func(yield func(string, Value) bool) {
		if !v.IsMapping() {
			return
		}
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			key := v.node.Content[i].Value
			c := Value{node: v.node.Content[i+1], positions: v.positions, path: KeyPath(v.path, key)}
			if !yield(key, c) {
				return
			}
		}
	}
}

// YAML writes the value out again, for a library that reads bytes, with a
// function that turns a line of that text into the place in the document.
func (v Value) YAML() ([]byte, func(line int) Position, error) {
	text, err := yaml.Marshal(v.node)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be written out: %w", err)
	}
	var again yaml.Node
	if err := yaml.Unmarshal(text, &again); err != nil {
		return nil, nil, fmt.Errorf("cannot be read back: %w", err)
	}
	lines := map[int]int{}
	if len(again.Content) == 1 {
		pairLines(v.node, again.Content[0], lines)
	}
	return text, func(line int) Position {
		if at, ok := lines[line]; ok {
			return Position{File: v.positions.file, Line: at}
		}
		return v.Pos()
	}, nil
}

// pairLines walks two equal trees and notes which line is which.
func pairLines(original, copied *yaml.Node, lines map[int]int) {
	if _, ok := lines[copied.Line]; !ok {
		lines[copied.Line] = original.Line
	}
	for i := range min(len(original.Content), len(copied.Content)) {
		pairLines(original.Content[i], copied.Content[i], lines)
	}
}

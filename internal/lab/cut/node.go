package cut

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// get is the value of a key, or nil.
func get(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// text is the value of a scalar, or "".
func text(m *yaml.Node, key string) string {
	if v := get(m, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// set replaces the value of a key, or adds the key at the end.
func set(m *yaml.Node, key string, v *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = v
			return
		}
	}
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, v)
}

// setText changes a scalar where it stands, so that its comment stays with it.
func setText(m *yaml.Node, key, value string) {
	if v := get(m, key); v != nil {
		v.Tag, v.Value = "!!str", value
		return
	}
	set(m, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
}

func setDuration(m *yaml.Node, key string, d time.Duration) { setText(m, key, spec.FormatDuration(d)) }

// child is the mapping of a key, which is added where it is missing.
func child(m *yaml.Node, key string) *yaml.Node {
	if v := get(m, key); v != nil {
		return v
	}
	v := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(m, key, v)
	return v
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

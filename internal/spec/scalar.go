package spec

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// ParseDuration reads a duration in Prometheus's form: 90s, 5m, 1h30m, 30d.
func ParseDuration(s string) (time.Duration, error) {
	d, err := model.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write numbers with units, like 90s, 5m or 30d", shorten(s))
	}
	return time.Duration(d), nil
}

// FormatDuration writes a duration as Prometheus and the documents do.
func FormatDuration(d time.Duration) string { return model.Duration(d).String() }

// describe names what a node is, for "want a list, got …".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		if n.ShortTag() != "!!map" {
			return "a mapping tagged " + n.ShortTag()
		}
		return "a mapping"
	case yaml.SequenceNode:
		if n.ShortTag() != "!!seq" {
			return "a list tagged " + n.ShortTag()
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	text := shorten(n.Value)
	switch n.ShortTag() {
	case "!!str":
		return fmt.Sprintf("text %q", text)
	case "!!int", "!!float":
		return "the number " + text
	case "!!bool":
		return text
	case "!!timestamp":
		return "the date " + text
	case "!!null":
		return "nothing"
	default:
		return fmt.Sprintf("a value tagged %s", n.ShortTag())
	}
}

func (d *decoder) text(v Value, u encoding.TextUnmarshaler) {
	s, ok := v.Text()
	if !ok {
		d.fault(v, "want text, got %s%s", describe(v.node), quoteHint(v.node))
		return
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		d.fault(v, "%s", err)
	}
}

// quoteHint tells how a number or a date becomes text.
func quoteHint(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!timestamp":
		return ": put it in quotes"
	}
	return ""
}

func (d *decoder) scalar(v Value, rv reflect.Value) {
	n, tag := v.node, v.node.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fault(v, "want %s, got %s", wanted(rv.Type()), describe(n))
	case rv.Type() == durationType:
		d.duration(v, rv)
	case rv.Type() == timeType:
		d.time(v, rv)
	case rv.Kind() == reflect.String:
		d.string(v, rv)
	case rv.Kind() == reflect.Bool:
		d.typed(v, rv, tag == "!!bool")
	case rv.CanInt():
		d.typed(v, rv, tag == "!!int")
	case rv.CanFloat():
		d.float(v, rv)
	default:
		d.fault(v, "cannot be read into a %s", rv.Type())
	}
}

func (d *decoder) string(v Value, rv reflect.Value) {
	s, ok := v.Text()
	if !ok {
		d.fault(v, "want text, got %s%s", describe(v.node), quoteHint(v.node))
		return
	}
	rv.SetString(s)
}

func (d *decoder) float(v Value, rv reflect.Value) {
	tag := v.node.ShortTag()
	d.typed(v, rv, tag == "!!int" || tag == "!!float")
	if f := rv.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
		d.fault(v, "want a finite number, got %s", v.node.Value)
	}
}

func wanted(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration"
	case t == timeType:
		return "a time"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	default:
		return "text"
	}
}

func (d *decoder) typed(v Value, rv reflect.Value, fits bool) {
	if fits && v.node.Decode(rv.Addr().Interface()) == nil {
		return
	}
	rv.SetZero()
	d.fault(v, "want %s, got %s", wanted(rv.Type()), describe(v.node))
}

func (d *decoder) duration(v Value, rv reflect.Value) {
	tag := v.node.ShortTag()
	if tag != "!!str" && tag != "!!int" && tag != "!!float" {
		d.fault(v, "want a duration like 5m, got %s", describe(v.node))
		return
	}
	dur, err := ParseDuration(v.node.Value)
	if err != nil {
		d.fault(v, "%s", err)
		return
	}
	rv.SetInt(int64(dur))
}

func (d *decoder) time(v Value, rv reflect.Value) {
	t, err := time.Parse(time.RFC3339, v.node.Value)
	if err != nil {
		d.fault(v, "%s is no time with a zone: write it like 2026-12-01T00:00:00Z", describe(v.node))
		return
	}
	rv.Set(reflect.ValueOf(t.UTC()))
}

// free reads a value whose type the reader does not prescribe: text, int64,
// float64, bool, []any or map[string]any.
func (d *decoder) free(v Value) any {
	switch v.node.Kind {
	case yaml.AliasNode:
		return nil
	case yaml.MappingNode:
		m := map[string]any{}
		for key, c := range v.Pairs() {
			m[key] = d.free(c)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(v.node.Content))
		for i, c := range v.node.Content {
			list[i] = d.free(Value{node: c, positions: v.positions, path: IndexPath(v.path, i)})
		}
		return list
	}
	return d.freeScalar(v)
}

func (d *decoder) freeScalar(v Value) any {
	var i int64
	var f float64
	var b bool
	switch v.node.ShortTag() {
	case "!!str", "!!timestamp":
		return v.node.Value
	case "!!null":
		return nil
	case "!!int":
		if v.node.Decode(&i) == nil {
			return i
		}
	case "!!float":
		if v.node.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	case "!!bool":
		if v.node.Decode(&b) == nil {
			return b
		}
	}
	d.fault(v, "want text, a number, true or false, got %s", describe(v.node))
	return nil
}

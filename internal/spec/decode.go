package spec

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Unmarshaler is a type that reads itself from a Value, for what a struct
// cannot express: "none, or a mapping".
type Unmarshaler interface {
	UnmarshalValue(Value) Faults
}

// Defaulter is a type that fills in its defaults. Decode calls it for each
// element that it makes itself: of a list, of a mapping, behind a pointer.
type Defaulter interface {
	SetDefaults()
}

// Decode reads the value into a pointer and returns everything that does not
// fit; what is there already stays as the default.
//
// Fields are named by their yaml tag; the option "required" makes a missing
// key a fault, and "inline" takes the keys of a struct into its parent. A
// field of type Position tagged ",pos" receives the place of its struct. A
// time.Duration is in Prometheus's form, a time.Time in RFC 3339's. No type is
// converted to another: 5 is no text, and "5" no number.
func (v Value) Decode(into any) Faults {
	rv := reflect.ValueOf(into)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return Faults{v.Fault("cannot be read into a %T, only into a pointer", into)}
	}
	d := decoder{}
	if v.node != nil {
		d.value(v, rv.Elem())
	}
	return limited(d.faults)
}

// The faults of a key that is missing, and of one without a value.
const (
	requiredText = "is required"
	noValueText  = "has no value: give it one, or remove the key"
)

type decoder struct {
	faults Faults
}

func (d *decoder) fault(v Value, format string, args ...any) {
	if len(d.faults) <= maxFaults {
		d.faults = append(d.faults, v.Fault(format, args...))
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	positionType = reflect.TypeFor[Position]()
	valueType    = reflect.TypeFor[Value]()
)

func (d *decoder) value(v Value, rv reflect.Value) {
	if v.node.Kind == yaml.AliasNode {
		return // The structure check has refused it already.
	}
	if rv.Type() == valueType {
		rv.Set(reflect.ValueOf(v))
		return
	}
	if rv.Kind() == reflect.Pointer {
		d.pointer(v, rv)
		return
	}
	if u, ok := rv.Addr().Interface().(Unmarshaler); ok {
		d.faults = append(d.faults, u.UnmarshalValue(v)...)
		return
	}
	if v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" {
		d.fault(v, noValueText)
		return
	}
	if rv.Type() == durationType || rv.Type() == timeType {
		d.scalar(v, rv)
		return
	}
	if u, ok := rv.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(v, u)
		return
	}
	d.byKind(v, rv)
}

func (d *decoder) byKind(v Value, rv reflect.Value) {
	switch rv.Kind() {
	case reflect.Struct:
		if d.want(v, yaml.MappingNode, "a mapping") {
			d.structure(v, rv)
		}
	case reflect.Map:
		if d.want(v, yaml.MappingNode, "a mapping") {
			d.mapping(v, rv)
		}
	case reflect.Slice:
		if d.want(v, yaml.SequenceNode, "a list") {
			d.list(v, rv)
		}
	case reflect.Interface:
		if x := d.free(v); x != nil {
			rv.Set(reflect.ValueOf(x))
		}
	default:
		d.scalar(v, rv)
	}
}

func (d *decoder) pointer(v Value, rv reflect.Value) {
	fresh := reflect.New(rv.Type().Elem())
	withDefaults(fresh)
	d.value(v, fresh.Elem())
	rv.Set(fresh)
}

func withDefaults(pointer reflect.Value) {
	if def, ok := pointer.Interface().(Defaulter); ok {
		def.SetDefaults()
	}
}

// want checks the kind and that no tag of the author's own gives the value a
// meaning that nobody here knows.
func (d *decoder) want(v Value, kind yaml.Kind, name string) bool {
	tags := map[yaml.Kind]string{yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}
	if v.node.Kind == kind && v.node.ShortTag() == tags[kind] {
		return true
	}
	d.fault(v, "want %s, got %s", name, describe(v.node))
	return false
}

func (d *decoder) list(v Value, rv reflect.Value) {
	out := reflect.MakeSlice(rv.Type(), 0, len(v.node.Content))
	for i, c := range v.node.Content {
		fresh := reflect.New(rv.Type().Elem())
		withDefaults(fresh)
		d.value(Value{node: c, positions: v.positions, path: IndexPath(v.path, i)}, fresh.Elem())
		out = reflect.Append(out, fresh.Elem())
	}
	rv.Set(out)
}

func (d *decoder) mapping(v Value, rv reflect.Value) {
	out := reflect.MakeMapWithSize(rv.Type(), len(v.node.Content)/2)
	for key, c := range v.Pairs() {
		fresh := reflect.New(rv.Type().Elem())
		withDefaults(fresh)
		d.value(c, fresh.Elem())
		out.SetMapIndex(reflect.ValueOf(key).Convert(rv.Type().Key()), fresh.Elem())
	}
	rv.Set(out)
}

// field is one key that a struct knows.
type field struct {
	value    reflect.Value
	required bool
}

func (d *decoder) structure(v Value, rv reflect.Value) {
	fields := map[string]field{}
	collect(v, rv, fields)
	seen := map[string]bool{}
	for key, c := range v.Pairs() {
		f, ok := fields[key]
		if !ok {
			known := make([]string, 0, len(fields))
			for k := range fields {
				known = append(known, k)
			}
			c.path = KeyPath(v.path, shorten(key))
			d.faults = append(d.faults, Fault{
				Pos: v.positions.At(KeyPath(v.path, key)), Path: c.path, Text: "unknown key, " + didYouMean(key, known),
			})
			if len(d.faults) > maxFaults {
				return
			}
			continue
		}
		seen[key] = true
		d.value(c, f.value)
	}
	for _, key := range sortedKeys(fields) {
		if fields[key].required && !seen[key] {
			d.faults = append(d.faults, v.positions.Fault(KeyPath(v.path, key), requiredText))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// collect lists the keys of a struct and gives its position field its place.
func collect(v Value, rv reflect.Value, fields map[string]field) {
	for i := range rv.NumField() {
		sf := rv.Type().Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		switch {
		case !sf.IsExported() || name == "-":
		case options == "inline":
			collect(v, rv.Field(i), fields)
		case options == "pos" && sf.Type == positionType:
			rv.Field(i).Set(reflect.ValueOf(v.Pos()))
		case name != "":
			fields[name] = field{value: rv.Field(i), required: strings.Contains(options, "required")}
		}
	}
}

package propose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// maxInteger is the largest integer that canonical JSON (RFC 8785) keeps
// exactly; beyond it two values could share one digest.
const maxInteger = 1<<53 - 1

var plainInteger = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)$`)

// MarshalJSON writes the values with sorted keys. A whole float64 keeps its
// point (6.0), so that reading it back gives a float64 again.
func (p Parameters) MarshalJSON() ([]byte, error) { return marshalValues(p) }

// UnmarshalJSON reads what MarshalJSON wrote: 6 is an int64, 6.0 and 6e0 are
// float64. A null, a list or an object as a value is an error.
func (p *Parameters) UnmarshalJSON(b []byte) error {
	vs, err := unmarshalValues(b, false)
	if err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	*p = vs
	return nil
}

// MarshalJSON writes the values like Parameters, and lists of strings.
func (l Live) MarshalJSON() ([]byte, error) { return marshalValues(l) }

// UnmarshalJSON reads values like Parameters, and lists of strings.
func (l *Live) UnmarshalJSON(b []byte) error {
	vs, err := unmarshalValues(b, true)
	if err != nil {
		return fmt.Errorf("live state: %w", err)
	}
	*l = vs
	return nil
}

func marshalValues(vs map[string]any) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(vs)) {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("value %s: %w", quoted(name), err)
		}
		value, err := marshalValue(vs[name])
		if err != nil {
			return nil, fmt.Errorf("value %s: %w", quoted(name), err)
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func marshalValue(v any) ([]byte, error) {
	switch v := v.(type) {
	case []string:
		if v == nil {
			return []byte("[]"), nil
		}
		return json.Marshal(v)
	case int64, string, bool:
		return json.Marshal(v)
	case float64:
		b, err := json.Marshal(v)
		if err == nil && !bytes.ContainsAny(b, ".e") {
			b = append(b, ".0"...)
		}
		return b, err
	default:
		return nil, fmt.Errorf("a value of type %T is none of int64, float64, string, bool", v)
	}
}

func unmarshalValues(b []byte, lists bool) (map[string]any, error) {
	if string(bytes.TrimSpace(b)) == "null" {
		return nil, nil
	}
	members, err := readObject(b)
	if err != nil {
		return nil, err
	}
	vs := make(map[string]any, len(members))
	for _, m := range members {
		v, err := unmarshalValue(m.raw, lists)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quoted(m.key), err)
		}
		vs[m.key] = v
	}
	return vs, nil
}

func unmarshalValue(raw json.RawMessage, lists bool) (any, error) {
	switch jsonKind(raw) {
	case "a string":
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case "a boolean":
		return string(raw) == "true", nil
	case "a number":
		return unmarshalNumber(json.Number(raw))
	case "a list":
		if lists {
			return unmarshalList(raw)
		}
	}
	return nil, fmt.Errorf("must be a number, a string or a boolean, not %s", jsonKind(raw))
}

func unmarshalNumber(n json.Number) (any, error) {
	if plainInteger.MatchString(n.String()) {
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil {
			return nil, errors.New("the integer does not fit in 64 bits")
		}
		return i, nil
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, errors.New("the number is too large")
	}
	return f, nil
}

func unmarshalList(raw json.RawMessage) (any, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	list := make([]string, len(items))
	for i, item := range items {
		if jsonKind(item) != "a string" {
			return nil, fmt.Errorf("a list holds strings, not %s", jsonKind(item))
		}
		if err := json.Unmarshal(item, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// maxExact is the largest integer that every JSON reader keeps exactly
// (RFC 8785 numbers are IEEE doubles). Beyond it two values share one text.
const maxExact = 1<<53 - 1

// canonicalJSON is RFC 8785: sorted keys, ECMAScript numbers, no spaces. The
// fields of v's structs must stand in the order of their names: then
// encoding/json writes the canonical form already, but for the rare texts that
// odd looks for, and those go through the library that knows the whole rule.
func canonicalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	raw := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !odd(raw) {
		return raw, nil
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return out, nil
}

// odd reports whether JSON of encoding/json with sorted fields may not be in
// canonical form: it escapes more than it must, sorts the keys of maps by bytes
// and not by UTF-16 units, which only differs beyond ASCII, and knows a minus
// zero.
func odd(raw []byte) bool {
	for _, b := range raw {
		if b >= utf8.RuneSelf {
			return true
		}
	}
	return bytes.Contains(raw, []byte(`\u`)) || bytes.Contains(raw, []byte("-0"))
}

// checkTexts refuses invalid UTF-8, which encoding/json would silently turn
// into U+FFFD.
func checkTexts(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%.60q is not valid UTF-8", s)
		}
	}
	return nil
}

// checkValues refuses parameter values that are not exactly one of the four
// types, or that canonical JSON cannot tell apart.
func checkValues(values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := checkTexts(name); err != nil {
			return fmt.Errorf("parameter name: %w", err)
		}
		if err := checkValue(values[name]); err != nil {
			return fmt.Errorf("parameter %.60q: %w", name, err)
		}
	}
	return nil
}

func checkValue(v any) error {
	switch v := v.(type) {
	case bool:
		return nil
	case string:
		return checkTexts(v)
	case int64:
		if v > maxExact || v < -maxExact {
			return fmt.Errorf("%d is beyond ±(2^53-1), which JSON cannot carry exactly", v)
		}
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is not a finite number", v)
		}
		return nil
	default:
		return fmt.Errorf("value of type %T, want int64, float64, string or bool", v)
	}
}

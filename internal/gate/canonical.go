package gate

import (
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

// canonicalJSON is RFC 8785: sorted keys, ECMAScript numbers, no spaces.
func canonicalJSON(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return out, nil
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

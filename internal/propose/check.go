package propose

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Check reports whether parameters satisfy the action's types and bounds
// against the live state. The gate calls it again before a claim. A bound that
// needs a live value which is unknown is an error. An integer is an int64
// within ±(2^53-1), a number a float64 or such an int64.
func Check(it Item, p Parameters) error {
	known := map[string]bool{}
	for _, d := range it.Action.Parameters {
		known[d.Name] = true
		v, ok := p[d.Name]
		if !ok {
			return fmt.Errorf("parameter %s is missing", quoted(d.Name))
		}
		if err := checkValue(it, d, v); err != nil {
			return fmt.Errorf("parameter %s: %w", quoted(d.Name), err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !known[name] {
			return fmt.Errorf("parameter %s is not one of action %s, which takes %s",
				quoted(name), quoted(it.Action.Name), parameterNames(it.Action))
		}
	}
	return nil
}

// Fits reports whether the parameters are those of the action, each with a value
// of its type. Bounds are not looked at: what an undo puts back was there before
// them.
func Fits(a spec.Action, p Parameters) error {
	known := map[string]bool{}
	for _, d := range a.Parameters {
		known[d.Name] = true
		v, ok := p[d.Name]
		if !ok {
			return fmt.Errorf("parameter %s is missing", quoted(d.Name))
		}
		if !OfType(d, v) {
			return fmt.Errorf("parameter %s: %w", quoted(d.Name), wrongType(d, v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !known[name] {
			return fmt.Errorf("parameter %s is not one of action %s, which takes %s", quoted(name), quoted(a.Name), parameterNames(a))
		}
	}
	return nil
}

// OfType reports whether a value is of the parameter's type. A target's state may
// hold anything under the parameter's name, for an actuator is a stranger.
func OfType(d spec.Parameter, v any) bool {
	switch d.Type {
	case spec.Integer:
		i, ok := v.(int64)
		return ok && i <= maxInteger && i >= -maxInteger
	case spec.Number:
		f, ok := toNumber(v)
		return ok && !math.IsNaN(f) && !math.IsInf(f, 0)
	case spec.Boolean:
		_, ok := v.(bool)
		return ok
	case spec.String:
		_, ok := v.(string)
		return ok
	}
	return false
}

func parameterNames(a spec.Action) string {
	if len(a.Parameters) == 0 {
		return "none"
	}
	names := make([]string, len(a.Parameters))
	for i, d := range a.Parameters {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

func checkValue(it Item, d spec.Parameter, v any) error {
	b, err := it.Bounds(d)
	if err != nil {
		return err
	}
	switch d.Type {
	case spec.Integer:
		i, ok := v.(int64)
		if !ok {
			return wrongType(d, v)
		}
		return checkInteger(b, i)
	case spec.Number:
		f, ok := toNumber(v)
		if !ok {
			return wrongType(d, v)
		}
		return checkNumber(b, f)
	case spec.Boolean:
		if _, ok := v.(bool); !ok {
			return wrongType(d, v)
		}
		return nil
	case spec.String:
		s, ok := v.(string)
		if !ok {
			return wrongType(d, v)
		}
		return checkString(d, b, s)
	default:
		return fmt.Errorf("its type %s is unknown", quoted(string(d.Type)))
	}
}

func wrongType(d spec.Parameter, v any) error {
	return fmt.Errorf("must be of type %s, not %T", d.Type, v)
}

func checkInteger(b Bounds, i int64) error {
	if i > maxInteger || i < -maxInteger {
		return fmt.Errorf("%d is beyond ±%d", i, int64(maxInteger))
	}
	return checkNumber(b, float64(i))
}

func checkNumber(b Bounds, f float64) error {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return fmt.Errorf("%v is not a finite number", f)
	case b.Minimum != nil && !(f >= *b.Minimum):
		return fmt.Errorf("%s is below the minimum %s", show(f), show(*b.Minimum))
	case b.Maximum != nil && !(f <= *b.Maximum):
		return fmt.Errorf("%s is above the maximum %s%s", show(f), show(*b.Maximum), b.why)
	default:
		return nil
	}
}

func checkString(d spec.Parameter, b Bounds, s string) error {
	if hasInvisible(s) {
		return errors.New("holds a control or invisible character")
	}
	if b.Listed && !slices.Contains(b.Values, s) {
		return fmt.Errorf("%s is none of the permitted values%s", quoted(s), listed(b.Values))
	}
	if d.Pattern == "" {
		if !b.Listed {
			return errors.New("has neither enum, pattern nor fromState, so no value is permitted")
		}
		return nil
	}
	re, err := regexp.Compile(d.Pattern)
	if err != nil {
		return fmt.Errorf("its pattern is invalid: %w", err)
	}
	// Leftmost-longest finds a match of the whole value if there is one; to
	// wrap the pattern in anchors could change what it means.
	re.Longest()
	if loc := re.FindStringIndex(s); loc == nil || loc[0] != 0 || loc[1] != len(s) {
		return fmt.Errorf("%s does not match the pattern %s as a whole", quoted(s), quoted(d.Pattern))
	}
	return nil
}

// listed shows the permitted values that may be shown to a model.
func listed(values []string) string {
	shown, _ := showable(values)
	if len(shown) == 0 {
		return ""
	}
	return ": " + strings.Join(shown, ", ")
}

// Bounds are the limits of one parameter, resolved against the live state.
type Bounds struct {
	// Minimum and Maximum are nil where there is none.
	Minimum, Maximum *float64
	// Listed: only Values are permitted.
	Listed bool
	Values []string

	why string
}

// Bounds resolves the limits of a parameter of the item's action. It is an
// error when one needs a live value that is not known.
func (it Item) Bounds(d spec.Parameter) (Bounds, error) {
	b := Bounds{Minimum: d.Minimum, Maximum: d.Maximum}
	if err := it.factor(d, &b); err != nil {
		return Bounds{}, err
	}
	if d.Enum != nil {
		b.Listed, b.Values = true, slices.Clone(d.Enum)
	}
	if d.FromState == "" {
		return b, nil
	}
	state, err := it.candidates(d)
	if err != nil {
		return Bounds{}, err
	}
	if b.Listed {
		state = slices.DeleteFunc(state, func(s string) bool { return !slices.Contains(d.Enum, s) })
	}
	b.Listed, b.Values = true, state
	return b, nil
}

// factor applies maximumFactor: at most factor x max(current, minimum).
func (it Item) factor(d spec.Parameter, b *Bounds) error {
	if d.MaximumFactor == 0 {
		return nil
	}
	current, ok := toNumber(it.live(d.Name))
	if !ok || math.IsNaN(current) || math.IsInf(current, 0) {
		return fmt.Errorf("maximumFactor needs the current value, and the live state has no number %s", quoted(d.Name))
	}
	base := current
	if d.Minimum != nil {
		base = max(base, *d.Minimum)
	}
	top := d.MaximumFactor * base
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return fmt.Errorf("maximumFactor %v gives no finite bound", d.MaximumFactor)
	}
	if b.Maximum == nil || top < *b.Maximum {
		b.Maximum = &top
		b.why = fmt.Sprintf(" (%s times %s)", show(d.MaximumFactor), show(base))
	}
	return nil
}

func (it Item) candidates(d spec.Parameter) ([]string, error) {
	switch v := it.live(d.FromState).(type) {
	case string:
		return []string{v}, nil
	case []string:
		return slices.Clone(v), nil
	default:
		return nil, fmt.Errorf("the live state has no string or list %s", quoted(d.FromState))
	}
}

func (it Item) live(name string) any {
	if !it.LiveKnown {
		return nil
	}
	return it.Live[name]
}

func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), v <= maxInteger && v >= -maxInteger
	case float64:
		return v, true
	default:
		return 0, false
	}
}

func show(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// fill puts the parameters in the place of their placeholders, once: what a
// value holds is never read again.
func fill(argv []string, p propose.Parameters) ([]string, error) {
	if len(argv) == 0 {
		return nil, errors.New("the action has no target.argv")
	}
	out := slices.Clone(argv)
	for i, element := range argv {
		name, ok := spec.Placeholder(element)
		switch {
		case !ok:
			continue
		case i == 0:
			return nil, errors.New("target.argv[0] is a placeholder, and the program is fixed")
		}
		value, ok := p[name]
		if !ok {
			return nil, fmt.Errorf("target.argv[%d] needs parameter %q, which the proposal does not have", i, name)
		}
		text, err := argument(value)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		out[i] = text
	}
	return out, nil
}

// argument is a value as a program reads it. One that begins with a dash would
// be read as an option, which is not what was bounded and approved.
func argument(value any) (string, error) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "", fmt.Errorf("is a %T, want text, a number, true or false", value)
	}
	switch {
	case strings.HasPrefix(text, "-"):
		return "", fmt.Errorf("%q begins with '-', and the program would read it as an option", execute.CleanText(text, 80))
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("%q holds a NUL byte, which ends an argument", execute.CleanText(text, 80))
	}
	return text, nil
}

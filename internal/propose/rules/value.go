package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The words that stand for a value of the observed state.
const (
	wordPrevious = "previous"
	wordCurrent  = "current"
)

// isWord reports whether a value of the file names one of the observed state:
// previous or current, unless the parameter's enum has that very text.
func isWord(d spec.Parameter, v any) bool {
	return (v == wordPrevious || v == wordCurrent) && !slices.Contains(d.Enum, fmt.Sprint(v))
}

// resolve gives the parameters with the words replaced by the observed state.
// Parameters that the action does not have are kept, for Check to refuse.
func (s step) resolve(it propose.Item) (propose.Parameters, error) {
	p := propose.Parameters{}
	maps.Copy(p, s.parameters)
	for _, d := range it.Action.Parameters {
		v, ok := s.parameters[d.Name]
		if !ok || !isWord(d, v) {
			continue
		}
		observed, err := observe(it, d, fmt.Sprint(v))
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", d.Name, err)
		}
		p[d.Name] = observed
	}
	return p, nil
}

// observe reads what a word stands for. The previous value is the first of a
// list: an observed state lists newest first.
func observe(it propose.Item, d spec.Parameter, word string) (any, error) {
	name := d.Name
	if word == wordPrevious {
		name = d.FromState
	}
	if name == "" {
		return nil, fmt.Errorf("%s needs a parameter with fromState", word)
	}
	if !it.LiveKnown {
		return nil, fmt.Errorf("%s is not known: the target's state could not be observed", word)
	}
	switch v := it.Live[name].(type) {
	case nil:
		return nil, fmt.Errorf("%s is not known: the observed state has no %s", word, name)
	case []string:
		if len(v) == 0 {
			return nil, fmt.Errorf("%s is not known: the observed list %s is empty", word, name)
		}
		return v[0], nil
	default:
		return v, nil
	}
}
